-- Rescue: takes back the leases of workers that are expired or missing. The caller decides the outcome of each job, by
-- the rules shared with the other stores, and does everything in one transaction.

-- Locks leases of lost workers until they hold about p_limit jobs, and returns the open jobs in them. Leases are taken
-- in order of token. If another session has locked a lease, the worker's later leases wait with it for the next call:
-- only the first at_once open jobs of a worker may have been running, so they must be counted from the first.
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
  v_seen record;
  v_done varbit;
  v_behind uuid[] := '{}';
  v_tokens bigint[] := '{}';
  v_open integer := 0;
  v_broken bigint;
begin
  -- If a worker claims, settles or sends a heartbeat at this moment, its row is locked, and the next call checks again.
  v_lost := array(
    select worker.id from holdfast.worker as worker where worker.expires_at <= v_now order by worker.id
    for update skip locked
  );
  for v_seen in
    select lease.token, lease.claimed_at, lease.worker from holdfast.lease as lease
    where lease.worker = any (v_lost)
      or not exists (select from holdfast.worker as worker where worker.id = lease.worker)
    order by lease.token
  loop
    exit when v_open >= p_limit;
    continue when v_seen.worker = any (v_behind);
    select lease.done into v_done from holdfast.lease as lease where lease.token = v_seen.token for update skip locked;
    if not found then
      v_behind := v_behind || v_seen.worker;
    elsif not exists (
      select from holdfast.batch as batch where batch.token = v_seen.token and batch.claimed_at = v_seen.claimed_at
    ) then
      v_broken := coalesce(v_broken, v_seen.token);
    else
      v_tokens := v_tokens || v_seen.token;
      v_open := v_open + holdfast.bits(~ v_done);
    end if;
  end loop;
  -- Rescue everything else first: one broken lease must not hold up the other workers' jobs.
  if v_broken is not null and v_tokens = '{}' then raise exception 'lease % has no batch', v_broken; end if;
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

-- Settles all open jobs of leases that holdfast.lock_crashed has locked, and revokes the leases:
-- [{token, kinds, delays, details, records, crashes}, ...], each list with an entry per open position.
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
    if cardinality(v_one.kinds) is distinct from holdfast.bits(~ v_lease.done) then
      raise exception 'lease % has % open jobs, but % are settled', v_one.token, holdfast.bits(~ v_lease.done),
        coalesce(cardinality(v_one.kinds), 0);
    end if;
    perform holdfast.settle_each(v_lease, ~ v_lease.done, ~ v_lease.done, 0, v_one.kinds, v_one.delays, null,
      v_one.details, null, v_one.records, v_one.crashes);
    insert into holdfast.revoked (token) values (v_one.token);
    -- The worker's other jobs come after these. A null at_once stays null: any of them may have been running.
    update holdfast.worker as worker set at_once = greatest(worker.at_once - cardinality(v_one.kinds), 0)
    where worker.id = v_lease.worker and worker.at_once is not null;
  end loop;
end $$;

-- Deletes expired workers that hold no lease, and returns their ids. It locks them first, because only a later statement
-- sees the lease of a claim that has just committed.
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
