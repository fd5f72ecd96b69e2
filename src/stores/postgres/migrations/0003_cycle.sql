-- Settle and claim. Locks are taken in one order everywhere: worker, leases by token, ready, unique keys.

-- Whether claims may take from the queue. A pause waits for the claims that are under way, so that none comes after its
-- answer; and because locking and looking must not share a snapshot, this is a function of its own.
create function holdfast.queue_is_open(p_queue text) returns boolean language plpgsql as $$
begin
  perform pg_advisory_xact_lock_shared('holdfast.queue'::regclass::oid::integer, hashtext(p_queue));
  return not exists (select from holdfast.queue where name = p_queue and paused);
end $$;

-- The columns of a waiting job from how a lease holds it, with what its handler said since.
create function holdfast.unpacked(
  p_job json, p_said jsonb,
  out attempt integer, out crashes integer, out created_at bigint, out due_at bigint, out head_start bigint,
  out lane smallint, out long boolean, out unique_key text, out past jsonb, out body text
) language sql immutable as $$
  select coalesce((p_job ->> 2)::integer, 1), coalesce((p_job ->> 3)::integer, 0),
    coalesce(p_job ->> 4, p_job ->> 0)::bigint, (p_job ->> 0)::bigint, (p_job -> 1 ->> 4)::bigint,
    (case when (p_job ->> 3)::integer > 0 then '10' else p_job -> 1 ->> 3 end)::smallint,
    p_job -> 1 ->> 2 is null, p_job -> 1 ->> 7,
    case when p_said is null then (p_job ->> 5)::jsonb else coalesce((p_job ->> 5)::jsonb, '{}') || p_said end,
    p_job ->> 1
$$;

-- Takes the jobs of lowest rank under new leases: one for the plain ones together, and one for a suspect, of which there is
-- one at most a claim. p_lanes and p_from say where to look: in each lane from that rank on. Answers a row a lease,
-- with its jobs in order of rank. Long payloads are fetched apart: a thousand of them would not fit into the memory of a call.
create function holdfast.claim(
  p_worker uuid, p_queue text, p_limit integer, p_lanes smallint[], p_from bigint[]
) returns table (token bigint, claimed_at bigint, jobs text) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint;
  v_lanes smallint[];
  v_lows bigint[];
  v_places tid[] := '{}';
  v_wanted bigint;
  v_got tid[];
begin
  if p_limit < 1 or not holdfast.queue_is_open(p_queue) then return; end if;
  v_now := holdfast.now_ms();
  -- Most lanes are empty, and a look at each is cheap. One that is alone has the whole limit, without being read twice.
  select array_agg(here.lane), array_agg(here.low) into v_lanes, v_lows
  from unnest(p_lanes, p_from) as here (lane, low)
  cross join lateral (
    select from holdfast.ready
    where queue = p_queue and lane = here.lane and rank >= here.low
    order by rank, id
    limit 1
  ) as first;
  if v_lanes is null then return; end if;
  -- Others may lock what was looked at, so that less is got than was wanted: then again, for the rest.
  for v_try in 1 .. 5 loop
    with lanes as materialized (
      select * from unnest(v_lanes, v_lows) as here (lane, low)
    ), wanted as materialized (
      select lane, low, p_limit as size from lanes where cardinality(v_lanes) = 1 and lane <> 10 and v_try = 1
      union all
      -- How many of each lane: looked at without locks, so that lanes share the limit by rank.
      select lane, low, count(*)::integer
      from (
        select lanes.lane, lanes.low
        from lanes
        cross join lateral (
          select rank, id from holdfast.ready
          where queue = p_queue and lane = lanes.lane and rank >= lanes.low and (v_try = 1 or ctid <> all (v_places))
          order by rank, id
          limit case when lanes.lane = 10 then 1 else p_limit end
        ) as first
        -- One suspect a claim: whoever was too late for it gets none.
        where case when v_try = 1 then cardinality(v_lanes) > 1 or lanes.lane = 10 else lanes.lane <> 10 end
        order by first.rank, first.id
        limit p_limit - cardinality(v_places)
      ) as best
      group by lane, low
    ), locked as (
      select row.place
      from wanted
      cross join lateral (
        select ctid as place from holdfast.ready
        where queue = p_queue and lane = wanted.lane and rank >= wanted.low and (v_try = 1 or ctid <> all (v_places))
        order by rank, id
        limit wanted.size
        for update skip locked
      ) as row
    )
    select (select sum(size) from wanted), array_agg(place) into v_wanted, v_got from locked;
    v_places := v_places || v_got;
    -- A lane that was alone has been read to its limit or its end.
    exit when v_wanted is null or cardinality(v_places) >= p_limit or cardinality(v_got) >= v_wanted
      or (cardinality(v_lanes) = 1 and v_lanes[1] <> 10);
  end loop;
  if cardinality(v_places) = 0 then return; end if;

  return query with taken as (
    delete from holdfast.ready where ctid = any (v_places)
    returning id, rank, due_at, created_at, attempt, crashes, lane, long, unique_key, past, body
  ), freed as (
    delete from holdfast.unique_key as held using taken
    where taken.unique_key is not null and taken.body::json ->> 8 = '-1'
      and held.key = taken.unique_key and held.job = taken.id
  ), batches as materialized (
    select array_agg(id) as ids,
      -- By hand, because json_build_array would cost as much as all the rest of a claim.
      array_agg('[' || due_at::text || ',' || body ||
        case when attempt = 0 and crashes = 0 and past is null and created_at = due_at then ']'
          else concat(',', attempt + 1, ',', crashes, ',', created_at, ',', coalesce(past::text, 'null'), ']') end
      ) as jobs,
      bool_or(long or unique_key is not null) as keyed
    from (select * from taken order by rank, id) as sorted
    group by case when lane = 10 then id end
  ), granted as (
    insert into holdfast.lease (worker, claimed_at, keyed, queue, done, ids, jobs)
    select p_worker, v_now, keyed, p_queue, repeat('0', cardinality(ids))::varbit, ids, jobs from batches
    returning token, ids
  )
  select granted.token, v_now, '[' || array_to_string(batches.jobs, ',') || ']'
  from granted join batches on batches.ids = granted.ids;
end $$;

-- Writes what became of positions of this worker's leases. p_leases names each lease once; p_masks has a bit for each of
-- its positions up to the last one in question. The lists after that run over all leases, position by position and with
-- p_starts saying where each lease begins; null for a whole list means that none has it. Kinds: completed (also null),
-- forget (completed, and nothing is kept of it), retry, dead, snooze, release, cancelled. p_details: the result, the error
-- as JSON, or the reason. Answers a list of [token, mask of what was settled before]: a lease that is not in it is not
-- this worker's any more. p_forget says that all of them are of the kind forget, which spares unpacking them.
create function holdfast.settle(
  p_worker uuid, p_leases bigint[], p_masks text[], p_starts integer[], p_kinds text[], p_delays bigint[],
  p_run_ms bigint[], p_details text[], p_dropped boolean[], p_forget boolean
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
      held.said -> (job.place - 1)::text as said, held.cancels -> (job.place - 1)::text ->> 'reason' as wish,
      -- A cancel that was asked for is not lost where the job would come back.
      case when job.kind in ('retry', 'snooze', 'release') and held.cancels ? (job.place - 1)::text then 'wished'
        else coalesce(job.kind, case when p_forget then 'forget' else 'completed' end) end as kind
    from held
    cross join lateral rows from (
      unnest(held.ids), unnest(held.jobs), unnest(p_kinds[held.low:held.high]),
      unnest(p_delays[held.low:held.high]), unnest(p_run_ms[held.low:held.high]),
      unnest(p_details[held.low:held.high]), unnest(p_dropped[held.low:held.high])
    ) with ordinality as job (id, job, kind, delay, run_ms, detail, dropped, place)
    where (held.keyed or not p_forget) and job.place <= length(held.asked) and get_bit(held.asked, (job.place - 1)::integer) = 1
  ), kept as (
    insert into holdfast.history
      (id, finished_at, token, run_ms, cancelled, result_dropped, queue, job, said, result, reason)
    select id, v_now, token, run_ms, kind <> 'completed', coalesce(dropped, false), queue, job, said,
      case when kind = 'completed' then detail end,
      case kind when 'cancelled' then detail when 'wished' then wish end
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

-- Settles, then claims: what is released here can be claimed here. Either part may be empty (p_leases, p_queue null).
-- Answers a row a lease, or one without a lease.
create function holdfast.cycle(
  p_worker uuid, p_leases bigint[], p_masks text[], p_starts integer[], p_kinds text[], p_delays bigint[],
  p_run_ms bigint[], p_details text[], p_dropped boolean[], p_forget boolean,
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
      p_dropped, p_forget);
  end if;
  if v_alive and p_queue is not null then
    return query select v_alive, v_settled, lease.*
      from holdfast.claim(p_worker, p_queue, p_limit, p_lanes, p_from) as lease;
    if found then return; end if;
  end if;
  return query select v_alive, v_settled, null::bigint, null::bigint, null::text;
end $$;
