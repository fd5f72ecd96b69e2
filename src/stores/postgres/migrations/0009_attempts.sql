-- Records of attempts, and who completed a job. Processes of the version before go on meanwhile: what they call stays.
--
-- The records of a job are part of its past, under "attempts", oldest first. A settle writes them where it writes what
-- the handler said, which outdoes the past: so they go wherever the job goes, and cost nothing where there are none.

-- Who settled the job. Null where that was before this column, and where no worker had it.
alter table holdfast.history add column worker uuid;

-- What is said of a job that is settled, with one more record: p_record is [how many of them stay, record]. p_job as in
-- a lease.
create function holdfast.with_record(p_said jsonb, p_job text, p_record text) returns jsonb language plpgsql immutable as $$
declare
  v_record constant jsonb := p_record;
  v_attempts jsonb := coalesce((p_job::json -> 5 ->> 'attempts')::jsonb, '[]') || (v_record -> 1);
begin
  while jsonb_array_length(v_attempts) > (v_record ->> 0)::integer loop
    v_attempts := v_attempts - 0;
  end loop;
  return coalesce(p_said, '{}') || jsonb_build_object('attempts', v_attempts);
end $$;

-- Writes what became of positions of this worker's leases. p_leases names each lease once; p_masks has a bit for each of
-- its positions up to the last one in question. The lists after that run over all leases, position by position and with
-- p_starts saying where each lease begins; null for a whole list means that none has it. Kinds: completed (also null),
-- forget (completed or dead, and nothing is kept of it), retry, dead, snooze, release, cancelled. p_details: the result,
-- the error as JSON, or the reason. p_forget says that all of them are of the kind forget, which spares unpacking them.
-- p_records as with_record takes them. Answers a list of [token, mask of what was settled before]: a lease that is not in
-- it is not this worker's any more.
create function holdfast.settle(
  p_worker uuid, p_leases bigint[], p_masks text[], p_starts integer[], p_kinds text[], p_delays bigint[],
  p_run_ms bigint[], p_details text[], p_dropped boolean[], p_forget boolean, p_records text[]
) returns json language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  v_now bigint;
  v_held json;
begin
  -- Waits for whoever settles the same leases first. What is read after that, and the time, is what they left.
  perform from holdfast.lease where token = any (p_leases) and worker = p_worker order by token for update;
  v_now := holdfast.now_ms();
  with held as materialized (
    select lease.token, lease.queue, lease.done, lease.keyed, lease.cancels, lease.said, lease.ids, lease.jobs,
      rpad(asked.mask, length(lease.done), '0')::varbit & ~ lease.done as asked,
      lease.done | rpad(asked.mask, length(lease.done), '0')::varbit as after,
      asked.start + 1 as low, asked.start + length(lease.done) as high
    from holdfast.lease as lease
    join unnest(p_leases, p_masks, p_starts) as asked (token, mask, start) on asked.token = lease.token
    where lease.worker = p_worker
  ), finished as (
    delete from holdfast.lease as lease using held
    where lease.token = held.token and position(B'0' in held.after) = 0
  ), partly as (
    update holdfast.lease as lease set done = held.after from held
    where lease.token = held.token and position(B'0' in held.after) > 0 and held.after <> held.done
  ), fresh as materialized (
    select held.token, held.queue, held.keyed, job.id, job.job, job.delay, job.run_ms, job.detail, job.dropped,
      case when job.record is null then held.said -> (job.place - 1)::text
        else holdfast.with_record(held.said -> (job.place - 1)::text, job.job, job.record) end as said,
      held.cancels -> (job.place - 1)::text ->> 'reason' as wish,
      -- A cancel that was asked for is not lost where the job would come back.
      case when job.kind in ('retry', 'snooze', 'release') and held.cancels ? (job.place - 1)::text then 'wished'
        else coalesce(job.kind, case when p_forget then 'forget' else 'completed' end) end as kind
    from held
    cross join lateral rows from (
      unnest(held.ids), unnest(held.jobs), unnest(p_kinds[held.low:held.high]),
      unnest(p_delays[held.low:held.high]), unnest(p_run_ms[held.low:held.high]),
      unnest(p_details[held.low:held.high]), unnest(p_dropped[held.low:held.high]),
      unnest(p_records[held.low:held.high])
    ) with ordinality as job (id, job, kind, delay, run_ms, detail, dropped, record, place)
    where (held.keyed or not p_forget) and job.place <= length(held.asked) and get_bit(held.asked, (job.place - 1)::integer) = 1
  ), kept as (
    insert into holdfast.history
      (id, finished_at, token, run_ms, cancelled, result_dropped, queue, job, said, result, reason, worker)
    select id, v_now, token, run_ms, kind <> 'completed', coalesce(dropped, false), queue, job, said,
      case when kind = 'completed' then detail end,
      case kind when 'cancelled' then detail when 'wished' then wish end, p_worker
    from fresh where kind in ('completed', 'cancelled', 'wished')
  ), died as (
    insert into holdfast.dead (id, finished_at, queue, job, error, said)
    select id, v_now, queue, job::json, detail::jsonb, said from fresh where kind = 'dead'
  ), waiting as (
    insert into holdfast.scheduled
      (id, rank, due_at, created_at, attempt, crashes, lane, long, queue, unique_key, past, body)
    select id, v_now + delay - head_start, v_now + delay, created_at,
      case when kind = 'snooze' then attempt - 1 else attempt end, crashes, lane, long, queue, unique_key,
      case when detail is null then past else coalesce(past, '{}') || jsonb_build_object('error', detail::jsonb) end, body
    from (select fresh.*, (holdfast.unpacked(job::json, said)).* from fresh where kind in ('retry', 'snooze')) as back
    returning due_at
  ), released as (
    insert into holdfast.ready
      (id, rank, due_at, created_at, attempt, crashes, lane, long, queue, unique_key, past, body)
    select id, due_at - head_start, due_at, created_at, attempt - 1, crashes, lane, long, queue, unique_key, past,
      body
    from (select fresh.*, (holdfast.unpacked(job::json, said)).* from fresh where kind = 'release') as back
    returning queue, lane, rank
  ), freed as (
    delete from holdfast.unique_key as taken using fresh
    where fresh.keyed and fresh.kind not in ('retry', 'snooze', 'release') and taken.until is null
      and taken.key = fresh.job::json -> 1 ->> 7 and taken.job = fresh.id
  ), forgotten as (
    delete from holdfast.payload as long using fresh
    where fresh.keyed and fresh.kind = 'forget' and long.id = fresh.id
  ), told as (
    select count(holdfast.tell_ready(queue, lane, rank))
    from (select queue, lane, min(rank) as rank from released group by queue, lane) as lowest
    union all
    select count(holdfast.tell_due(soonest - v_now))
    from (select min(due_at) as soonest from waiting having count(*) > 0) as next
  )
  select json_agg(json_build_array(held.token, held.done::text)) into v_held
  from held, (select count(*) from told) as done;
  return v_held;
end $$;

-- Without records: for release_leases, and for processes of the version before.
create or replace function holdfast.settle(
  p_worker uuid, p_leases bigint[], p_masks text[], p_starts integer[], p_kinds text[], p_delays bigint[],
  p_run_ms bigint[], p_details text[], p_dropped boolean[], p_forget boolean
) returns json language sql as $$
  select holdfast.settle(p_worker, p_leases, p_masks, p_starts, p_kinds, p_delays, p_run_ms, p_details, p_dropped,
    p_forget, null)
$$;

-- Settles, then claims: what is released here can be claimed here. Either part may be empty (p_leases, p_queue null).
-- Answers a row a lease, or one without a lease. The one without p_records is for processes of the version before.
create function holdfast.cycle(
  p_worker uuid, p_leases bigint[], p_masks text[], p_starts integer[], p_kinds text[], p_delays bigint[],
  p_run_ms bigint[], p_details text[], p_dropped boolean[], p_forget boolean, p_records text[],
  p_queue text, p_limit integer, p_lanes smallint[], p_from bigint[]
) returns table (alive boolean, settled json, token bigint, claimed_at bigint, jobs text)
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  v_alive boolean;
  v_settled json;
begin
  perform from holdfast.worker where id = p_worker for key share;
  v_alive := found;
  if p_leases is not null then
    v_settled := holdfast.settle(p_worker, p_leases, p_masks, p_starts, p_kinds, p_delays, p_run_ms, p_details,
      p_dropped, p_forget, p_records);
  end if;
  if v_alive and p_queue is not null then
    return query select v_alive, v_settled, lease.*
      from holdfast.claim(p_worker, p_queue, p_limit, p_lanes, p_from) as lease;
    if found then return; end if;
  end if;
  return query select v_alive, v_settled, null::bigint, null::bigint, null::text;
end $$;

-- Takes leases away from workers that are expired or missing, until there are about p_limit jobs: revokes them and hands
-- over what was open in them. The caller decides what becomes of each job, in the same transaction.
create function holdfast.take_crashed(p_limit integer)
returns table (
  token bigint, worker uuid, queue text, place integer, job json, cancel jsonb, said jsonb, claimed_at bigint,
  taken_at bigint
) language plpgsql as $$
#variable_conflict use_column
declare
  v_now constant bigint := holdfast.now_ms();
  v_tokens bigint[];
begin
  -- Whoever settles or beats at this moment has its row locked, and is left for the next time.
  perform from holdfast.worker where expires_at <= v_now order by id for update skip locked;
  v_tokens := array(
    select picked.token
    from (
      select lease.token from holdfast.lease as lease
      where not exists (select from holdfast.worker as worker where worker.id = lease.worker and worker.expires_at > v_now)
      order by lease.token
      for update skip locked
    ) as picked
  );
  v_tokens := array(
    select counted.token
    from (
      select lease.token, sum(lease.size) over (order by lease.token) - lease.size as before
      from (
        select token, length(replace(done::text, '1', '')) as size from holdfast.lease where token = any (v_tokens)
      ) as lease
    ) as counted
    where counted.before < p_limit
  );
  insert into holdfast.revoked (token) select unnest(v_tokens) on conflict do nothing;
  return query
    with taken as (
      delete from holdfast.lease as lease where lease.token = any (v_tokens) returning lease.*
    )
    select taken.token, taken.worker, taken.queue, (job.place - 1)::integer, job.job::json,
      taken.cancels -> (job.place - 1)::text, taken.said -> (job.place - 1)::text, taken.claimed_at, v_now
    from taken cross join lateral unnest(taken.jobs) with ordinality as job (job, place)
    where get_bit(taken.done, (job.place - 1)::integer) = 0
    order by taken.token, job.place;
end $$;

-- For processes of the version before, which leave no record of a crash.
create or replace function holdfast.take_orphans(p_limit integer)
returns table (token bigint, worker uuid, queue text, place integer, job json, cancel jsonb, said jsonb)
language sql as $$
  select token, worker, queue, place, job, cancel, said from holdfast.take_crashed(p_limit)
$$;

-- Writes what the caller has decided of orphans: {id, token, queue, job, said, kind, delay, error, reason, crashes,
-- record} each, of the kinds scheduled, dead and cancelled; the record as with_record takes it, or none. A scheduled one
-- hands its attempt back.
create or replace function holdfast.place_orphans(p_orphans json) returns void language plpgsql as $$
declare
  v_now constant bigint := holdfast.now_ms();
  v_told bigint;
begin
  with orphan as materialized (
    select (one ->> 'id')::uuid as id, (one ->> 'token')::bigint as token, one ->> 'queue' as queue, one -> 'job' as job,
      case when one ->> 'record' is null then (one ->> 'said')::jsonb
        else holdfast.with_record((one ->> 'said')::jsonb, one ->> 'job', one ->> 'record') end as said,
      one ->> 'kind' as kind, (one ->> 'delay')::bigint as delay, (one ->> 'error')::jsonb as error,
      one ->> 'reason' as reason, (one ->> 'crashes')::integer as lost
    from json_array_elements(p_orphans) as list (one)
  ), waiting as (
    insert into holdfast.scheduled
      (id, rank, due_at, created_at, attempt, crashes, lane, long, queue, unique_key, past, body)
    select id, v_now + delay - head_start, v_now + delay, created_at, attempt - 1, lost, 10, long, queue,
      unique_key, coalesce(past, '{}') || jsonb_build_object('error', error), body
    from (select orphan.*, (holdfast.unpacked(job, said)).* from orphan where kind = 'scheduled') as back
    returning due_at
  ), died as (
    insert into holdfast.dead (id, finished_at, queue, job, error, said)
    select id, v_now, queue, holdfast.with_crashes(job, lost), error, said from orphan where kind = 'dead'
  ), cancelled as (
    insert into holdfast.history (id, finished_at, token, cancelled, queue, job, said, reason)
    select id, v_now, token, true, queue, holdfast.with_crashes(job, lost)::text, said, reason
    from orphan where kind = 'cancelled'
  ), freed as (
    delete from holdfast.unique_key as held using orphan
    where orphan.kind <> 'scheduled' and held.until is null and held.key = orphan.job -> 1 ->> 7
      and held.job = orphan.id
  )
  select count(holdfast.tell_due(soonest - v_now)) into v_told
  from (select min(due_at) as soonest from waiting having count(*) > 0) as next;
end $$;

-- Every job in one place, as the program reads it. One query of it is one snapshot: a job that moves meanwhile is neither
-- missed nor shown twice. job as in a lease; worker: who has it, or who completed it. No column may be added: a process
-- of the version before has "select *" of it prepared, whose result must not change.
create or replace view holdfast.job_record as
  select id, 'ready' as state, queue, json_build_array(due_at, body::json, attempt, crashes, created_at, past) as job,
    null::jsonb as said, null::bigint as token, null::uuid as worker, null::bigint as claimed_at,
    null::boolean as cancel_requested, null::bigint as finished_at, null::bigint as run_ms, null::text as result,
    null::boolean as result_dropped, null::text as reason, null::jsonb as error
  from holdfast.ready
  union all
  select id, 'scheduled', queue, json_build_array(due_at, body::json, attempt, crashes, created_at, past),
    null, null, null, null, null, null, null, null, null, null, null
  from holdfast.scheduled
  union all
  select job.id, 'running', lease.queue, lease.jobs[job.place]::json,
    lease.said -> (job.place - 1)::text, lease.token, lease.worker, lease.claimed_at,
    coalesce(lease.cancels ? (job.place - 1)::text, false), null, null, null, null, null, null
  from holdfast.lease as lease
  cross join lateral unnest(lease.ids) with ordinality as job (id, place)
  where get_bit(lease.done, (job.place - 1)::integer) = 0
  union all
  select id, 'dead', queue, job, said, null, null, null, null, finished_at, null, null, null, null, error
  from holdfast.dead
  union all
  select id, case when cancelled then 'cancelled' else 'completed' end, queue, job::json, said, token, worker, null, null,
    finished_at, run_ms, result, result_dropped, reason, null
  from holdfast.history;
