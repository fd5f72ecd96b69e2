-- Rescue: takes back the leases of workers that are expired or missing. The caller decides what becomes of each job, by
-- the rules it shares with the other stores, and does all of it in one transaction.

-- Locks leases of lost workers until they hold about p_limit jobs, and returns what is open in them.
create function holdfast.lock_crashed(p_limit integer)
returns table (
  token bigint, worker uuid, queue text, place integer, id uuid, name text, attempt integer, crashes integer,
  max_crashes integer, cancel jsonb, claimed_at bigint, taken_at bigint, at_once integer
) language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
  v_now constant bigint := holdfast.now_ms();
  v_lost uuid[];
  v_tokens bigint[];
begin
  -- A worker that claims, settles or beats at this moment has its row locked, and is left for the next call.
  v_lost := array(
    select worker.id from holdfast.worker as worker where worker.expires_at <= v_now order by worker.id
    for update skip locked
  );
  v_tokens := array(
    select lease.token from holdfast.lease as lease
    where lease.worker = any (v_lost)
      or not exists (select from holdfast.worker as worker where worker.id = lease.worker)
    order by lease.token limit p_limit
    for update skip locked
  );
  v_tokens := array(
    select counted.token
    from (
      select lease.token, sum(holdfast.bits(~ lease.done)) over (order by lease.token) - holdfast.bits(~ lease.done) as before
      from holdfast.lease as lease where lease.token = any (v_tokens)
    ) as counted
    where counted.before < p_limit
  );
  return query
    select lease.token, lease.worker, lease.queue, job.place, job.id, unpacked.name, unpacked.attempt, unpacked.crashes,
      unpacked.max_crashes, lease.cancels -> job.place::text, lease.claimed_at, v_now, owner.at_once
    from holdfast.lease as lease
    left join holdfast.worker as owner on owner.id = lease.worker
    cross join lateral holdfast.batch_jobs(lease.token, lease.claimed_at) as job
    cross join lateral holdfast.unpack_job(job.job) as unpacked
    where lease.token = any (v_tokens) and get_bit(lease.done, job.place) = 0
    order by lease.token, job.place;
end $$;

-- Settles and revokes leases that holdfast.lock_crashed has locked, with everything that was open in them:
-- [{token, kinds, delays, details, records, crashes}, ...], the lists in order of position.
create function holdfast.settle_crashed(p_leases json) returns void language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_one record;
  v_lease holdfast.lease;
begin
  for v_one in
    select asked.* from json_to_recordset(p_leases)
      as asked (token bigint, kinds text[], delays bigint[], details text[], records text[], crashes integer[])
  loop
    select * into strict v_lease from holdfast.lease as lease where lease.token = v_one.token for update;
    perform holdfast.settle_each(v_lease, ~ v_lease.done, ~ v_lease.done, 0, v_one.kinds, v_one.delays, null,
      v_one.details, null, v_one.records, v_one.crashes);
    insert into holdfast.revoked (token) values (v_one.token);
    -- What is left of the worker's jobs stands behind these.
    update holdfast.worker as worker set at_once = greatest(worker.at_once - cardinality(v_one.kinds), 0)
    where worker.id = v_lease.worker;
  end loop;
end $$;

-- Forgets expired workers that hold no lease any more, and returns their ids. Locks them first: a claim that has just
-- committed is seen only by the statement after that.
create function holdfast.remove_workers() returns setof uuid language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_expired constant uuid[] := array(
    select worker.id from holdfast.worker as worker where worker.expires_at <= (select holdfast.now_ms())
    order by worker.id for update skip locked
  );
begin
  return query
    delete from holdfast.worker as gone
    where gone.id = any (v_expired) and not exists (select from holdfast.lease as lease where lease.worker = gone.id)
    returning gone.id;
end $$;
