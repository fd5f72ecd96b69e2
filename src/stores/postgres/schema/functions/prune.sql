-- Forgets flushes that nobody repeats any more, and keys and notes whose time is over, at most p_limit of each. Returns
-- whether there may be more.
create function holdfast.prune_expired(p_flush_ms bigint, p_limit integer) returns boolean language plpgsql
set plan_cache_mode = force_custom_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_now constant bigint := holdfast.now_ms();
  v_flushes integer;
  v_keys integer;
  v_notes integer;
begin
  delete from holdfast.intake as intake
  where intake.id in (
    select old.id from holdfast.intake as old where old.at < v_now - p_flush_ms order by old.at limit p_limit
  );
  get diagnostics v_flushes = row_count;
  delete from holdfast.unique_key as held
  where held.key in (
    select old.key from holdfast.unique_key as old where old.until <= v_now order by old.until limit p_limit
    for update skip locked
  );
  get diagnostics v_keys = row_count;
  -- Skips a note that somebody renews at this moment.
  delete from holdfast.note as note
  where (note.kind, note.id) in (
    select old.kind, old.id from holdfast.note as old where old.until <= v_now limit p_limit for update skip locked
  );
  get diagnostics v_notes = row_count;
  return greatest(v_flushes, v_keys, v_notes) >= p_limit;
end $$;

-- Forgets finished jobs, at most p_limit per call. A null count means no limit.
create function holdfast.prune(
  p_completed_ms bigint, p_dead_ms bigint, p_cancelled_ms bigint,
  p_max_completed bigint, p_max_dead bigint, p_max_cancelled bigint, p_limit integer
) returns integer language plpgsql
set plan_cache_mode = force_custom_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_now constant bigint := holdfast.now_ms();
  v_total record;
  v_pruned integer;
begin
  select coalesce(sum(status.completed), 0)::bigint as completed, coalesce(sum(status.dead), 0)::bigint as dead,
    coalesce(sum(status.cancelled), 0)::bigint as cancelled
  into v_total
  from (
    select queue.completed, queue.dead, queue.cancelled from holdfast.queue as queue
    union all
    select change.completed, change.dead, change.cancelled from holdfast.count_change as change
  ) as status;
  v_pruned := holdfast.prune_packs(v_now - p_completed_ms, p_limit);
  v_pruned := v_pruned + holdfast.prune_completed(v_now - p_completed_ms,
    greatest(v_total.completed - v_pruned - p_max_completed, 0), p_limit - v_pruned);
  v_pruned := v_pruned + holdfast.prune_dead(v_now - p_dead_ms, greatest(v_total.dead - p_max_dead, 0), p_limit - v_pruned);
  return v_pruned + holdfast.prune_cancelled(v_now - p_cancelled_ms, greatest(v_total.cancelled - p_max_cancelled, 0),
    p_limit - v_pruned);
end $$;

-- Forgets completed jobs by age, whole rows of history at a time.
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
    returning history.token, history.claimed_at, history.size, history.queue, history.apart, history.mask
  ), payloads as (
    delete from holdfast.payload as apart
    using (
      select job.id from gone
      join holdfast.batch as batch on batch.token = gone.token and batch.claimed_at = gone.claimed_at
      cross join lateral unnest(batch.ids) with ordinality as job (id, place)
      where gone.apart and (gone.mask is null or get_bit(gone.mask, (job.place - 1)::integer) = 1)
    ) as job
    where apart.id = job.id
  ), counted as (
    insert into holdfast.count_change (queue, completed)
    select gone.queue, - sum(gone.size) from gone group by gone.queue
  )
  select array_agg(distinct gone.token), coalesce(sum(gone.size), 0) into v_tokens, v_pruned from gone;
  perform holdfast.delete_batches(v_tokens);
  return v_pruned;
end $$;

-- Forgets completed jobs one by one in the order they finished: those older than p_before, and the p_over oldest ones.
create function holdfast.prune_completed(p_before bigint, p_over bigint, p_limit integer) returns integer
language plpgsql as $$
declare
  v_over constant bigint := coalesce(p_over, 0);
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
        where v_over > 0 or history.finished_at <= p_before
        order by history.finished_at, history.token limit p_limit
      ) as first
    ), job as (
      select pack.finished_at, job.id, pack.token, (job.place - 1)::integer as place
      -- With all that finished at the same time as the last one that is needed: those go by id.
      from (
        select packs.*, min(packs.before) over (partition by packs.finished_at) as earlier from packs
      ) as pack
      join holdfast.batch as batch on batch.token = pack.token and batch.claimed_at = pack.claimed_at
      cross join lateral unnest(batch.ids) with ordinality as job (id, place)
      where pack.earlier < p_limit and (pack.mask is null or get_bit(pack.mask, (job.place - 1)::integer) = 1)
      union all
      (select ended.finished_at, ended.id, null, null from holdfast.ended as ended
       where ended.completed and (v_over > 0 or ended.finished_at <= p_before)
       order by ended.finished_at, ended.id limit p_limit)
    ), old as (
      select first.* from (
        select job.*, row_number() over (order by job.finished_at, job.id) as number from job
      ) as first
      where first.number <= p_limit and (first.finished_at <= p_before or first.number <= v_over)
    )
    select old.token, array_agg(old.place), array_agg(old.id) from old group by old.token
  loop
    if v_token is not null then v_pruned := v_pruned + holdfast.forget_packed(v_token, v_places);
    else v_pruned := v_pruned + holdfast.forget_ended(v_ids); end if;
  end loop;
  return v_pruned;
end $$;

-- The same for cancelled jobs.
create function holdfast.prune_cancelled(p_before bigint, p_over bigint, p_limit integer) returns integer language sql as $$
  select holdfast.forget_ended(array(
    select first.id from (
      select ended.id, ended.finished_at, row_number() over (order by ended.finished_at, ended.id) as number
      from holdfast.ended as ended
      where not ended.completed and (p_over > 0 or ended.finished_at <= p_before)
      order by ended.finished_at, ended.id limit greatest(p_limit, 0)
    ) as first
    where first.finished_at <= p_before or first.number <= p_over
  ))
$$;

-- The same for dead letters.
create function holdfast.prune_dead(p_before bigint, p_over bigint, p_limit integer) returns integer language sql as $$
  select holdfast.forget_dead(array(
    select first.id from (
      select dead.id, dead.finished_at, row_number() over (order by dead.finished_at, dead.id) as number
      from holdfast.dead as dead
      where p_over > 0 or dead.finished_at <= p_before
      order by dead.finished_at, dead.id limit greatest(p_limit, 0)
    ) as first
    where first.finished_at <= p_before or first.number <= p_over
  ))
$$;

create function holdfast.forget_ended(p_ids uuid[]) returns integer language sql as $$
  with gone as (
    delete from holdfast.ended as ended where ended.id = any (p_ids)
    returning ended.id, ended.queue, ended.completed, ended.payload
  ), payloads as (
    delete from holdfast.payload as apart using gone where apart.id = gone.id and gone.payload is null
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
    delete from holdfast.payload as apart using gone where apart.id = gone.id and gone.payload is null
  ), counted as (
    insert into holdfast.count_change (queue, dead) select gone.queue, - count(*) from gone group by gone.queue
  )
  select count(*)::integer from gone
$$;
