-- Upkeep: promote what is due, forget what is old, and agree on who does it.

-- Moves due jobs to ready; tells how many, and when the next one is due.
create function holdfast.promote(p_limit integer, out promoted integer, out next_in bigint) language plpgsql
set plan_cache_mode = force_generic_plan as $$
declare
  v_now constant bigint := holdfast.now_ms();
begin
  with due as (
    delete from holdfast.scheduled
    where ctid = any (array(
      select ctid from holdfast.scheduled where due_at <= v_now order by due_at, id limit p_limit
      for update skip locked
    ))
    returning *
  ), moved as (
    insert into holdfast.ready (id, rank, due_at, created_at, attempt, crashes, lane, long, queue, unique_key, past, body)
    select id, rank, due_at, created_at, attempt, crashes, lane, long, queue, unique_key, past, body from due
    returning queue, lane, rank
  ), lowest as (
    select queue, lane, min(rank) as rank, count(*) as size from moved group by queue, lane
  ), told as (
    select size, holdfast.tell_ready(queue, lane, rank) from lowest
  )
  select coalesce(sum(size), 0) into promoted from told;
  select greatest(due_at - v_now, 0) into next_in from holdfast.scheduled order by due_at limit 1;
end $$;

-- Deletes up to p_limit finished jobs of one kind that are older than p_before, or beyond the newest p_keep of them.
create function holdfast.prune_history(p_cancelled boolean, p_before bigint, p_keep bigint, p_limit integer)
returns integer language plpgsql as $$
declare
  v_before bigint := p_before;
  v_over bigint := 0;
  v_ids uuid[];
begin
  if p_keep is not null then
    select greatest(count(*) - p_keep, 0) into v_over from holdfast.history where cancelled = p_cancelled;
  end if;
  with old as (
    select id, finished_at, queue, row_number() over (order by finished_at, id) as place
    from holdfast.history
    where cancelled = p_cancelled and (v_over > 0 or finished_at <= v_before)
    order by finished_at, id limit p_limit
  ), gone as (
    delete from holdfast.history as job using old
    where job.id = old.id and job.finished_at = old.finished_at
      and (old.finished_at <= v_before or old.place <= v_over)
    returning job.id, job.queue
  ), known as (
    insert into holdfast.queue (name) select distinct queue from gone on conflict do nothing
  )
  select array_agg(id) into v_ids from gone;
  delete from holdfast.payload where id = any (v_ids);
  return coalesce(cardinality(v_ids), 0);
end $$;

-- The same for dead letters.
create function holdfast.prune_dead(p_before bigint, p_keep bigint, p_limit integer) returns integer language plpgsql as $$
declare
  v_over bigint := 0;
  v_ids uuid[];
begin
  if p_keep is not null then select greatest(count(*) - p_keep, 0) into v_over from holdfast.dead; end if;
  with old as (
    select id, finished_at, row_number() over (order by finished_at, id) as place
    from holdfast.dead
    where v_over > 0 or finished_at <= p_before
    order by finished_at, id limit p_limit
  ), gone as (
    delete from holdfast.dead as job using old
    where job.id = old.id and (old.finished_at <= p_before or old.place <= v_over)
    returning job.id, job.queue
  ), known as (
    insert into holdfast.queue (name) select distinct queue from gone on conflict do nothing
  )
  select array_agg(id) into v_ids from gone;
  delete from holdfast.payload where id = any (v_ids);
  return coalesce(cardinality(v_ids), 0);
end $$;

-- Forgets finished jobs, keys whose time is over, and flushes that nobody repeats any more. Null for a count: no limit.
create function holdfast.prune(
  p_completed_ms bigint, p_dead_ms bigint, p_cancelled_ms bigint,
  p_max_completed bigint, p_max_dead bigint, p_max_cancelled bigint, p_flush_ms bigint, p_limit integer
) returns integer language plpgsql as $$
declare
  v_now constant bigint := holdfast.now_ms();
  v_pruned integer := 0;
begin
  delete from holdfast.intake
  where id in (select id from holdfast.intake where at < v_now - p_flush_ms order by at limit 10000);
  delete from holdfast.unique_key
  where key in (select key from holdfast.unique_key where until <= v_now order by key limit 10000 for update skip locked);
  v_pruned := holdfast.prune_history(false, v_now - p_completed_ms, p_max_completed, p_limit);
  if v_pruned < p_limit then
    v_pruned := v_pruned + holdfast.prune_dead(v_now - p_dead_ms, p_max_dead, p_limit - v_pruned);
  end if;
  if v_pruned < p_limit then
    v_pruned := v_pruned + holdfast.prune_history(true, v_now - p_cancelled_ms, p_max_cancelled, p_limit - v_pruned);
  end if;
  return v_pruned;
end $$;

-- Makes the partitions of today and the next days. What the rest took meanwhile for such a day stays there: then that day
-- has no partition of its own.
create function holdfast.make_partitions(p_days integer) returns void language plpgsql as $$
declare
  v_day_ms constant bigint := 86400000;
  v_today constant bigint := holdfast.now_ms() / v_day_ms;
  v_schema text;
  v_parent text;
  v_name text;
  v_from bigint;
begin
  select nspname, relname into v_schema, v_parent
  from pg_class join pg_namespace on pg_namespace.oid = relnamespace where pg_class.oid = 'holdfast.history'::regclass;
  for v_ahead in 0 .. p_days loop
    v_from := (v_today + v_ahead) * v_day_ms;
    v_name := v_parent || '_' || to_char(to_timestamp(v_from / 1000) at time zone 'UTC', 'YYYYMMDD');
    continue when to_regclass(format('%I.%I', v_schema, v_name)) is not null;
    continue when exists (
      select from holdfast.history_rest where finished_at >= v_from and finished_at < v_from + v_day_ms
    );
    execute format('create table %I.%I (like holdfast.history including defaults)', v_schema, v_name);
    execute format('alter table holdfast.history attach partition %I.%I for values from (%s) to (%s)',
      v_schema, v_name, v_from, v_from + v_day_ms);
  end loop;
end $$;

-- The first ones are there before any job is. Whoever reads while the day's own partition is being attached is planned
-- without it, and may then miss a job that finished into it a moment later.
select holdfast.make_partitions(3);

-- Drops the partitions of days that were over at a time; answers how many jobs were in them. Drops nothing where somebody
-- is in the way: the next call does.
create function holdfast.drop_partitions(p_before bigint) returns bigint language plpgsql as $$
declare
  v_part record;
  v_size bigint;
  v_dropped bigint := 0;
begin
  for v_part in
    select part.oid::regclass as name, to_date(right(part.relname, 8), 'YYYYMMDD') as day
    from pg_inherits join pg_class as part on part.oid = inhrelid
    where inhparent = 'holdfast.history'::regclass and part.relname ~ '_[0-9]{8}$'
    order by 2
  loop
    exit when (extract(epoch from v_part.day + 1) * 1000)::bigint > p_before;
    begin
      set local lock_timeout = '500ms';
      execute format('lock table %s in access exclusive mode', v_part.name);
      execute format('insert into holdfast.queue (name) select distinct queue from %s on conflict do nothing', v_part.name);
      execute format('delete from holdfast.payload as long using %s as job where job.id = long.id', v_part.name);
      execute format('select count(*) from %s', v_part.name) into v_size;
      execute format('drop table %s', v_part.name);
      v_dropped := v_dropped + v_size;
    exception when lock_not_available then
      null;
    end;
  end loop;
  return v_dropped;
end $$;

-- Becomes or stays the leader.
create function holdfast.lead(p_candidate uuid, p_ttl bigint) returns boolean language plpgsql as $$
declare
  v_now constant bigint := holdfast.now_ms();
begin
  insert into holdfast.leader as leader (candidate, until) values (p_candidate, v_now + p_ttl)
  on conflict (one) do update set candidate = excluded.candidate, until = excluded.until
  where leader.candidate = excluded.candidate or leader.until <= v_now;
  return found;
end $$;

-- Fires one slot of a schedule: moves it on and enqueues its job, once. p_job as enqueue_unique takes it.
create function holdfast.fire(p_id text, p_slot bigint, p_next bigint, p_job json) returns text language plpgsql as $$
declare
  v_last bigint;
begin
  select last_slot into v_last from holdfast.schedule where id = p_id for update;
  if not found then return 'missing'; end if;
  if p_slot <= v_last then return 'already'; end if;
  update holdfast.schedule set last_slot = p_slot, next_slot = p_next where id = p_id;
  -- The job's own id serves as the flush: this step can happen once only.
  perform holdfast.enqueue_unique((p_job ->> 'id')::uuid, json_build_array(p_job));
  return 'fired';
end $$;
