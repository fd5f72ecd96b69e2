-- What keeps a worker's leases alive, and what takes them back.

-- Renews a worker that is not rescued, gives back the leases that it was never told of (their attempts are handed back),
-- and tells what it should know: all leases in its name, and cancels as [token, position, reason].
create function holdfast.heartbeat(p_worker uuid, p_strangers bigint[])
returns table (alive boolean, tokens json, cancels json) language plpgsql set plan_cache_mode = force_generic_plan as $$
begin
  update holdfast.worker set expires_at = holdfast.now_ms() + lease_ms where id = p_worker;
  if not found then
    return query select false, null::json, null::json;
    return;
  end if;
  if p_strangers is not null then perform holdfast.release_leases(p_worker, p_strangers); end if;
  return query select true,
    (select json_agg(lease.token order by lease.token) from holdfast.lease as lease where lease.worker = p_worker),
    (select json_agg(json_build_array(lease.token, cancel.key::integer, cancel.value ->> 'reason'))
     from holdfast.lease as lease cross join lateral jsonb_each(lease.cancels) as cancel
     where lease.worker = p_worker and lease.cancels is not null
       and get_bit(lease.done, cancel.key::integer) = 0);
end $$;

-- Releases all that is open under these leases of the worker, and revokes them.
create function holdfast.release_leases(p_worker uuid, p_tokens bigint[]) returns void language plpgsql as $$
declare
  v_lease record;
begin
  for v_lease in
    select token, length(done) as size from holdfast.lease
    where token = any (p_tokens) and worker = p_worker order by token for update
  loop
    perform holdfast.settle(p_worker, array[v_lease.token], array[repeat('1', v_lease.size)], array[0],
      array_fill('release'::text, array[v_lease.size]), null, null, null, null, false);
    insert into holdfast.revoked (token) values (v_lease.token) on conflict do nothing;
  end loop;
end $$;

-- What became of leases that a settle did not find: true where it was finished, false where it is not this worker's.
create function holdfast.was_finished(p_tokens bigint[]) returns table (token bigint, finished boolean) language sql as $$
  select asked, not exists (select from holdfast.lease as lease where lease.token = asked)
    and not exists (select from holdfast.revoked as revoked where revoked.token = asked)
    and asked between 1 and coalesce(pg_sequence_last_value(pg_get_serial_sequence('holdfast.lease', 'token')), 0)
  from unnest(p_tokens) as asked
$$;

-- Keeps progress and log lines of running jobs, at most p_lines of them: [[token, position, progress, lines], ...].
create function holdfast.report(p_worker uuid, p_reports json, p_lines integer) returns void language plpgsql as $$
declare
  v_report record;
  v_said jsonb;
  v_log jsonb;
begin
  for v_report in
    select (report ->> 0)::bigint as token, report ->> 1 as place, (report -> 2)::jsonb as progress,
      (report -> 3)::jsonb as lines
    from json_array_elements(p_reports) with ordinality as list (report, number)
    order by (report ->> 0)::bigint, number
  loop
    select coalesce(said -> v_report.place, (jobs[v_report.place::integer + 1]::json ->> 5)::jsonb, '{}') into v_said
    from holdfast.lease
    where token = v_report.token and worker = p_worker
      and case when v_report.place::integer between 0 and length(done) - 1
        then get_bit(done, v_report.place::integer) = 0 else false end
    for update;
    continue when not found;
    v_log := coalesce(v_said -> 'log', '[]') || v_report.lines;
    if jsonb_array_length(v_log) > p_lines then
      select jsonb_agg(line order by number) into v_log
      from jsonb_array_elements(v_log) with ordinality as lines (line, number)
      where number > jsonb_array_length(v_log) - p_lines;
    end if;
    v_said := jsonb_build_object('log', v_log, 'progress',
      case when jsonb_typeof(v_report.progress) = 'object' then v_report.progress else v_said -> 'progress' end);
    update holdfast.lease set said = coalesce(said, '{}') || jsonb_build_object(v_report.place, v_said)
    where token = v_report.token;
  end loop;
end $$;

-- Takes leases away from workers that are expired or missing, until there are about p_limit jobs: revokes them and hands
-- over what was open in them. The caller decides what becomes of each job, in the same transaction.
create function holdfast.take_orphans(p_limit integer)
returns table (token bigint, worker uuid, queue text, place integer, job json, cancel jsonb, said jsonb)
language plpgsql as $$
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
      taken.cancels -> (job.place - 1)::text, taken.said -> (job.place - 1)::text
    from taken cross join lateral unnest(taken.jobs) with ordinality as job (job, place)
    where get_bit(taken.done, (job.place - 1)::integer) = 0
    order by taken.token, job.place;
end $$;

-- Writes what the caller has decided of orphans: {id, token, queue, job, said, kind, delay, error, reason, crashes} each,
-- of the kinds scheduled, dead and cancelled. A scheduled one hands its attempt back.
create function holdfast.place_orphans(p_orphans json) returns void language plpgsql as $$
declare
  v_now constant bigint := holdfast.now_ms();
  v_told bigint;
begin
  with orphan as materialized (
    select (one ->> 'id')::uuid as id, (one ->> 'token')::bigint as token, one ->> 'queue' as queue, one -> 'job' as job,
      (one ->> 'said')::jsonb as said, one ->> 'kind' as kind, (one ->> 'delay')::bigint as delay,
      (one ->> 'error')::jsonb as error, one ->> 'reason' as reason, (one ->> 'crashes')::integer as lost
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

-- A job as a lease holds it, with another number of lost workers.
create function holdfast.with_crashes(p_job json, p_crashes integer) returns json language sql immutable as $$
  select json_build_array(p_job -> 0, p_job -> 1, coalesce(p_job -> 2, '1'), p_crashes,
    coalesce(p_job -> 4, p_job -> 0), p_job -> 5)
$$;

-- Forgets expired workers that hold no lease any more, and tells which.
create function holdfast.bury_workers() returns setof uuid language sql as $$
  delete from holdfast.worker
  where id in (
    select id from holdfast.worker as worker
    where expires_at <= (select holdfast.now_ms())
      and not exists (select from holdfast.lease as lease where lease.worker = worker.id)
    order by id for update skip locked
  )
  returning id
$$;
