-- Claims.
--
-- The order of locks. A deadlock costs deadlock_timeout (1 s) in a worker's cycle, so every function takes its locks in this
-- order, and skips one that it cannot get at once if it has to go back:
--   1. the worker
--   2. waiting jobs with their unique keys, in order of key: each job before its key
--   3. rows of history
--   4. leases, in order of token
--   5. ended and dead jobs, in order of id
-- What differs, and why it is safe or rare:
--   A replay locks dead letters before keys. Nothing holds a key while it waits for a dead letter.
--   A settle frees the keys of its jobs while it holds leases. Nothing else locks the key of a running job, except an enqueue
--   above read committed, or one that saw the key free a moment before.
--   Pruning by number takes 3 and 4 batch by batch. It can deadlock with a discard of the same jobs.
--   If a job is released during a bulk cancel, the cancel locks it after leases.

-- Whether claims may take from the queue. A pause waits for running claims, so that none takes jobs after its answer. A
-- separate function, because locking and reading must not share a snapshot.
create function holdfast.queue_is_open(p_queue text) returns boolean language plpgsql as $$
begin
  perform pg_advisory_xact_lock_shared('holdfast.queue'::regclass::oid::integer, hashtext(p_queue));
  return not exists (select from holdfast.queue as queue where queue.name = p_queue and queue.paused);
end $$;

-- Takes the jobs of lowest rank, at most p_limit: the plain ones under one lease, and a crash suspect, at most one per
-- claim, under its own lease. p_lanes, p_from and p_to are the ranges to read: lane, lowest rank, and highest rank,
-- exclusive; a lane may be listed several times.
--
-- large: the claimed jobs whose payloads are in the table payload; null if there are none.
-- answer: how much it has seen, and the leases as holdfast.grant_lease writes them, each behind U+001C:
--   .  nothing is left there except jobs locked by others
--   +  there may be more
--   -  it read nothing: the queue is paused
create function holdfast.claim(
  p_worker uuid, p_queue text, p_limit integer, p_lanes smallint[], p_from bigint[], p_to bigint[],
  out answer text, out large uuid[]
) language plpgsql as $$
declare
  v_now bigint;
  v_lanes smallint[];
  v_lows bigint[];
  v_highs bigint[];
  v_locked record;
  v_taken record;
begin
  if p_limit < 1 or not holdfast.queue_is_open(p_queue) then
    answer := '-';
    return;
  end if;
  answer := '.';
  v_now := holdfast.now_ms();
  -- Most lanes are empty, and checking each is cheap. If only one has jobs, it is read once, with the whole limit.
  select array_agg(here.lane), array_agg(here.low), array_agg(here.high) into v_lanes, v_lows, v_highs
  from unnest(p_lanes, p_from, p_to) as here (lane, low, high)
  cross join lateral (
    select from holdfast.ready as ready
    where ready.queue = p_queue and ready.lane = here.lane and ready.rank >= here.low and ready.rank < here.high
    order by ready.rank, ready.id limit 1
  ) as first;
  if v_lanes is null then return; end if;
  if cardinality(v_lanes) = 1 and v_lanes[1] <> 10 then
    select array_agg(job.place) as places, array_agg(job.id) as ids, string_agg(job.job, ',') as jobs,
      string_agg(job.payload, E'\x1e') as payloads, bool_or(job.keyed) as keyed,
      array_agg(job.id) filter (where job.payload = '') as large, min(job.name) as first_name,
      max(job.name) as last_name
    into v_taken
    from (
      select ready.ctid as place, ready.id, ready.name, ready.unique_key is not null as keyed,
        coalesce(ready.payload, '') as payload,
        case when ready.attempt = 0 and ready.past is null and ready.unique_key is null
            and ready.created_at = ready.due_at then '[' || ready.due_at || ',' || ready.facts || ']'
          else holdfast.pack_job(ready.due_at, ready.facts, ready.attempt + 1, ready.crashes, ready.created_at, ready.past,
            ready.unique_key, ready.unique_hold) end as job
      from holdfast.ready as ready
      where ready.queue = p_queue and ready.lane = v_lanes[1] and ready.rank >= v_lows[1] and ready.rank < v_highs[1]
      order by ready.rank, ready.id limit p_limit
      for update skip locked
    ) as job;
    if v_taken.ids is null then return; end if;
    answer := case when cardinality(v_taken.ids) < p_limit then E'.\x1c' else E'+\x1c' end
      || holdfast.grant_lease(p_worker, p_queue, v_now, v_taken.places, v_taken.ids, v_taken.jobs, v_taken.payloads,
        v_taken.keyed, v_taken.large is not null, v_taken.first_name, v_taken.last_name);
    large := v_taken.large;
    return;
  end if;

  select * into strict v_locked from holdfast.lock_by_rank(p_queue, p_limit, v_lanes, v_lows, v_highs);
  if v_locked.more then answer := '+'; end if;
  for v_taken in
    select array_agg(job.place order by job.rank, job.id) as places, array_agg(job.id order by job.rank, job.id) as ids,
      string_agg(job.job, ',' order by job.rank, job.id) as jobs,
      string_agg(job.payload, E'\x1e' order by job.rank, job.id) as payloads, bool_or(job.keyed) as keyed,
      array_agg(job.id) filter (where job.payload = '') as large, min(job.name) as first_name, max(job.name) as last_name
    from (
      select ready.ctid as place, ready.id, ready.lane, ready.rank, ready.name, ready.unique_key is not null as keyed,
        coalesce(ready.payload, '') as payload,
        holdfast.pack_job(ready.due_at, ready.facts, ready.attempt + 1, ready.crashes, ready.created_at, ready.past,
          ready.unique_key, ready.unique_hold) as job
      from holdfast.ready as ready where ready.ctid = any (v_locked.places)
    ) as job
    group by job.lane = 10
  loop
    answer := answer || E'\x1c' || holdfast.grant_lease(p_worker, p_queue, v_now, v_taken.places, v_taken.ids,
      v_taken.jobs, v_taken.payloads, v_taken.keyed, v_taken.large is not null, v_taken.first_name, v_taken.last_name);
    large := large || v_taken.large;
  end loop;
end $$;

-- Locks the jobs of lowest rank among several lanes, at most one of them a suspect. more: there may be more jobs to lock.
create function holdfast.lock_by_rank(
  p_queue text, p_limit integer, p_lanes smallint[], p_from bigint[], p_to bigint[], out places tid[], out more boolean
) language plpgsql as $$
declare
  v_places tid[] := '{}';
  v_wanted bigint;
  v_got tid[];
begin
  -- Another claim may lock some of the jobs between the read and the lock. Then read again, for the rest.
  for v_try in 1 .. 5 loop
    with wanted as materialized (
      -- How many jobs to take from each lane. Reads without locks, because the lanes share the limit by rank.
      select best.lane, best.low, best.high, count(*)::integer as size
      from (
        select lanes.lane, lanes.low, lanes.high
        from unnest(p_lanes, p_from, p_to) as lanes (lane, low, high)
        cross join lateral (
          select ready.rank, ready.id from holdfast.ready as ready
          where ready.queue = p_queue and ready.lane = lanes.lane and ready.rank >= lanes.low
            and ready.rank < lanes.high and (v_try = 1 or ready.ctid <> all (v_places))
          order by ready.rank, ready.id
          limit case when lanes.lane = 10 then 1 else p_limit end
        ) as first
        -- If another claim has taken the suspect meanwhile, do not search for another one.
        where v_try = 1 or lanes.lane <> 10
        order by first.rank, first.id
        limit p_limit - cardinality(v_places)
      ) as best
      group by best.lane, best.low, best.high
    ), locked as (
      select job.place
      from wanted
      cross join lateral (
        select ready.ctid as place from holdfast.ready as ready
        where ready.queue = p_queue and ready.lane = wanted.lane and ready.rank >= wanted.low
          and ready.rank < wanted.high and (v_try = 1 or ready.ctid <> all (v_places))
        order by ready.rank, ready.id
        limit wanted.size
        for update skip locked
      ) as job
    )
    select (select sum(wanted.size) from wanted), array_agg(locked.place) into v_wanted, v_got from locked;
    v_places := v_places || v_got;
    more := cardinality(v_places) >= p_limit or coalesce(cardinality(v_got), 0) < coalesce(v_wanted, 0);
    exit when cardinality(v_places) >= p_limit or not more;
  end loop;
  places := v_places;
end $$;
