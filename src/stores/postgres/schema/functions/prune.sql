-- Deletes flushes that are too old to be repeated, and expired keys and notes, at most p_limit of each. more says
-- whether to call again. Reads flushes that were written at p_from or later; next is where to continue, or null if
-- there were none. Under an old open transaction, deleted rows stay in the index, and a scan from the start reads past
-- all of them.
create function holdfast.prune_expired(p_flush_ms bigint, p_limit integer, p_from bigint, out more boolean, out next bigint)
language plpgsql
set plan_cache_mode = force_custom_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_now constant bigint := holdfast.now_ms();
  v_flushes integer;
  v_keys integer;
  v_notes integer;
begin
  with gone as (
    delete from holdfast.intake as intake
    where intake.id = any (array(
      select old.id from holdfast.intake as old where old.at >= p_from and old.at < v_now - p_flush_ms
      order by old.at limit p_limit
    ))
    returning intake.at
  )
  select count(*), max(gone.at) into v_flushes, next from gone;
  delete from holdfast.unique_key as held
  where held.key = any (array(
    select old.key from holdfast.unique_key as old where old.until <= v_now order by old.until limit p_limit
    for update skip locked
  ));
  get diagnostics v_keys = row_count;
  -- Skips a note that is being renewed.
  delete from holdfast.note as note
  where (note.kind, note.id) in (
    select old.kind, old.id from holdfast.note as old where old.until <= v_now limit p_limit for update skip locked
  );
  get diagnostics v_notes = row_count;
  more := greatest(v_flushes, v_keys, v_notes) >= p_limit;
end $$;

-- Deletes finished jobs, at most p_limit per call. A null count means no limit. The functions below read in the order
-- of an index and stop at the first job that stays; the settings ensure this regardless of the statistics.
create function holdfast.prune(
  p_completed_ms bigint, p_dead_ms bigint, p_cancelled_ms bigint,
  p_max_completed bigint, p_max_dead bigint, p_max_cancelled bigint, p_limit integer
) returns integer language plpgsql
set plan_cache_mode = force_custom_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_now constant bigint := holdfast.now_ms();
  v_total record;
  v_over_completed bigint := 0;
  v_over_dead bigint := 0;
  v_over_cancelled bigint := 0;
  v_pruned integer;
begin
  v_pruned := holdfast.prune_packs(v_now - p_completed_ms, p_limit);
  -- Reads every change that is not compacted yet, so only if a count is limited.
  if coalesce(p_max_completed, p_max_dead, p_max_cancelled) is not null then
    select coalesce(sum(status.completed), 0)::bigint as completed, coalesce(sum(status.dead), 0)::bigint as dead,
      coalesce(sum(status.cancelled), 0)::bigint as cancelled
    into v_total
    from (
      select queue.completed, queue.dead, queue.cancelled from holdfast.queue as queue
      union all
      select change.completed, change.dead, change.cancelled from holdfast.count_change as change
    ) as status;
    v_over_completed := coalesce(v_total.completed - p_max_completed, 0);
    v_over_dead := coalesce(v_total.dead - p_max_dead, 0);
    v_over_cancelled := coalesce(v_total.cancelled - p_max_cancelled, 0);
  end if;
  v_pruned := v_pruned + holdfast.prune_completed(v_now - p_completed_ms, v_over_completed, p_limit - v_pruned);
  v_pruned := v_pruned + holdfast.prune_dead(v_now - p_dead_ms, v_over_dead, p_limit - v_pruned);
  return v_pruned + holdfast.prune_cancelled(v_now - p_cancelled_ms, v_over_cancelled, p_limit - v_pruned);
end $$;

-- Deletes completed jobs by age, whole rows of history at a time.
create function holdfast.prune_packs(p_before bigint, p_limit integer) returns integer language plpgsql as $$
declare
  v_tokens bigint[];
  v_pruned integer;
begin
  with old as (
    select pack.token, pack.finished_at, pack.total
    from (
      select first.*, sum(first.size) over (order by first.finished_at, first.token) as total
      from (
        select history.token, history.finished_at, history.size from holdfast.history as history
        where history.finished_at <= p_before order by history.finished_at, history.token limit p_limit
      ) as first
    ) as pack
    where pack.total <= p_limit
  ), gone as (
    delete from holdfast.history as history using (select distinct old.token, old.finished_at from old) as old
    where history.token = old.token and history.finished_at = old.finished_at
    returning history.token, history.claimed_at, history.size, history.queue, history.has_large, history.mask
  ), payloads as (
    delete from holdfast.payload as large
    using (
      select job.id from gone
      join holdfast.batch as batch on batch.token = gone.token and batch.claimed_at = gone.claimed_at
      cross join lateral unnest(batch.ids) with ordinality as job (id, place)
      where gone.has_large and (gone.mask is null or get_bit(gone.mask, (job.place - 1)::integer) = 1)
    ) as job
    where large.id = job.id
  ), counted as (
    insert into holdfast.count_change (queue, completed)
    select gone.queue, - sum(gone.size) from gone group by gone.queue
  )
  select array_agg(distinct gone.token), coalesce(sum(gone.size), 0) into v_tokens, v_pruned from gone;
  perform holdfast.delete_batches(v_tokens);
  return v_pruned;
end $$;

-- Deletes completed jobs one by one, in the order in which they finished: those that finished by p_before, and the p_over
-- oldest ones. Both begin with the oldest job, so they are one run of that order: up to p_before, or, if more have to go, up
-- to the p_over-th job.
create function holdfast.prune_completed(p_before bigint, p_over bigint, p_limit integer) returns integer
language plpgsql as $$
declare
  v_until constant bigint := case when p_over > 0 then 9223372036854775807 else p_before end;
  v_token bigint;
  v_places integer[];
  v_ids uuid[];
  v_pruned integer := 0;
begin
  if p_limit <= 0 then return 0; end if;
  for v_token, v_places, v_ids in
    with packs as (
      select first.*, sum(first.size) over (order by first.finished_at, first.token) - first.size as before
      from (
        select history.token, history.claimed_at, history.finished_at, history.size, history.mask
        from holdfast.history as history
        where history.finished_at <= v_until
        order by history.finished_at, history.token limit p_limit
      ) as first
    ), job as (
      select pack.finished_at, job.id, pack.token, (job.place - 1)::integer as place
      -- With every job that finished at the same time as the last one that has to go: those go in order of id.
      from (
        select packs.*, min(packs.before) over (partition by packs.finished_at) as earlier from packs
      ) as pack
      join holdfast.batch as batch on batch.token = pack.token and batch.claimed_at = pack.claimed_at
      cross join lateral unnest(batch.ids) with ordinality as job (id, place)
      where pack.earlier < p_limit and (pack.mask is null or get_bit(pack.mask, (job.place - 1)::integer) = 1)
      union all
      (select ended.finished_at, ended.id, null, null from holdfast.ended as ended
       where ended.completed and ended.finished_at <= v_until
       order by ended.finished_at, ended.id limit p_limit)
    ), old as (
      select first.* from (
        select job.*, row_number() over (order by job.finished_at, job.id) as number from job
      ) as first
      where first.number <= p_limit and (first.finished_at <= p_before or first.number <= p_over)
    )
    select old.token, array_agg(old.place), array_agg(old.id) from old group by old.token
  loop
    if v_token is not null then v_pruned := v_pruned + holdfast.forget_packed(v_token, v_places);
    else v_pruned := v_pruned + holdfast.forget_ended(v_ids); end if;
  end loop;
  return v_pruned;
end $$;

-- The same for cancelled jobs.
create function holdfast.prune_cancelled(p_before bigint, p_over bigint, p_limit integer) returns integer
language plpgsql as $$
declare
  v_ids uuid[];
begin
  if p_limit <= 0 then return 0; end if;
  v_ids := array(
    select ended.id from holdfast.ended as ended where not ended.completed and ended.finished_at <= p_before
    order by ended.finished_at, ended.id limit p_limit
  );
  if cardinality(v_ids) < least(p_over, p_limit) then
    v_ids := array(
      select ended.id from holdfast.ended as ended where not ended.completed
      order by ended.finished_at, ended.id limit least(p_over, p_limit)
    );
  end if;
  return case when v_ids <> '{}' then holdfast.forget_ended(v_ids) else 0 end;
end $$;

-- The same for dead letters.
create function holdfast.prune_dead(p_before bigint, p_over bigint, p_limit integer) returns integer
language plpgsql as $$
declare
  v_ids uuid[];
begin
  if p_limit <= 0 then return 0; end if;
  v_ids := array(
    select dead.id from holdfast.dead as dead where dead.finished_at <= p_before
    order by dead.finished_at, dead.id limit p_limit
  );
  if cardinality(v_ids) < least(p_over, p_limit) then
    v_ids := array(
      select dead.id from holdfast.dead as dead order by dead.finished_at, dead.id limit least(p_over, p_limit)
    );
  end if;
  return case when v_ids <> '{}' then holdfast.forget_dead(v_ids) else 0 end;
end $$;

create function holdfast.forget_ended(p_ids uuid[]) returns integer language sql as $$
  with gone as (
    delete from holdfast.ended as ended where ended.id = any (p_ids)
    returning ended.id, ended.queue, ended.completed, ended.payload
  ), payloads as (
    delete from holdfast.payload as large where large.id = any (array(select gone.id from gone where gone.payload is null))
  ), counted as (
    insert into holdfast.count_change (queue, completed, cancelled)
    select gone.queue, - count(*) filter (where gone.completed), - count(*) filter (where not gone.completed)
    from gone group by gone.queue
  )
  select count(*)::integer from gone
$$;

create function holdfast.forget_dead(p_ids uuid[]) returns integer language sql as $$
  with gone as (
    delete from holdfast.dead as dead where dead.id = any (p_ids) returning dead.id, dead.queue, dead.payload
  ), payloads as (
    delete from holdfast.payload as large where large.id = any (array(select gone.id from gone where gone.payload is null))
  ), counted as (
    insert into holdfast.count_change (queue, dead) select gone.queue, - count(*) from gone group by gone.queue
  )
  select count(*)::integer from gone
$$;
