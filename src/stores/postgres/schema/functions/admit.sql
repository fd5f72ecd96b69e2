-- The only way into ready and scheduled: enqueue, promote, retry, release, rescue, replay and edit all end here. A job that
-- is due goes to ready, any other job to scheduled; both are counted, and workers that listen are notified.
--
-- All lists are in the same order. A list of queues, names, priorities or head starts with one element stands for all
-- jobs. A null list means: due now, created now, no attempt yet, no crash, no key, no past. If a payload is null, the
-- table payload has it already; a payload above 512 bytes is inserted there.
create function holdfast.admit(
  p_now bigint, p_ids uuid[], p_queues text[], p_names text[], p_priorities smallint[], p_head_starts bigint[],
  p_dues bigint[], p_created bigint[], p_attempts integer[], p_crashes integer[], p_holds bigint[], p_keys text[],
  p_pasts jsonb[], p_facts text[], p_payloads text[]
) returns void language plpgsql as $$
declare
  v_place record;
begin
  insert into holdfast.payload as large (id, body)
  select job.id, job.payload from unnest(p_ids, p_payloads) as job (id, payload) where octet_length(job.payload) > 512;

  -- The common case: only the columns without a default.
  if p_dues is null and p_created is null and p_holds is null and cardinality(p_queues) = 1
    and cardinality(p_priorities) = 1 and cardinality(p_head_starts) = 1 then
    insert into holdfast.ready (id, rank, due_at, created_at, lane, priority, queue, name, facts, payload)
    select job.id, p_now - p_head_starts[1], p_now, p_now, p_priorities[1], p_priorities[1], p_queues[1],
      coalesce(job.name, p_names[1]), job.facts, case when octet_length(job.payload) <= 512 then job.payload end
    from unnest(p_ids, p_names, p_facts, p_payloads) as job (id, name, facts, payload);
    insert into holdfast.count_change (queue, ready) values (p_queues[1], cardinality(p_ids));
    perform holdfast.notify_ready(p_queues[1], p_priorities[1], p_now - p_head_starts[1]);
    return;
  end if;

  for v_place in
    with job as materialized (
      select job.id, coalesce(job.due_at, p_now) as due_at, coalesce(job.created_at, p_now) as created_at,
        coalesce(job.attempt, 0) as attempt, coalesce(job.crashes, 0) as crashes,
        coalesce(job.priority, p_priorities[1]) as priority, coalesce(job.head_start, p_head_starts[1]) as head_start,
        coalesce(job.queue, p_queues[1]) as queue, coalesce(job.name, p_names[1]) as name, job.hold, job.key, job.past,
        job.facts, case when octet_length(job.payload) <= 512 then job.payload end as payload
      from unnest(p_ids, p_queues, p_names, p_priorities, p_head_starts, p_dues, p_created, p_attempts, p_crashes, p_holds,
        p_keys, p_pasts, p_facts, p_payloads) as job (id, queue, name, priority, head_start, due_at, created_at, attempt,
        crashes, hold, key, past, facts, payload)
    ), ready as (
      insert into holdfast.ready as ready (id, rank, due_at, created_at, attempt, crashes, lane, priority, queue, name,
        unique_hold, unique_key, past, facts, payload)
      select job.id, job.due_at - job.head_start, job.due_at, job.created_at, job.attempt, job.crashes,
        case when job.crashes > 0 then 10 else job.priority end, job.priority, job.queue, job.name, job.hold, job.key,
        job.past, job.facts, job.payload
      from job where job.due_at <= p_now
      returning ready.queue, ready.lane, ready.rank
    ), scheduled as (
      insert into holdfast.scheduled as scheduled (id, due_at, head_start, created_at, attempt, crashes, priority, queue,
        name, unique_hold, unique_key, past, facts, payload)
      select job.id, job.due_at, job.head_start, job.created_at, job.attempt, job.crashes, job.priority, job.queue,
        job.name, job.hold, job.key, job.past, job.facts, job.payload
      from job where job.due_at > p_now
      returning scheduled.queue, scheduled.due_at
    ), changed as (
      insert into holdfast.count_change (queue, scheduled, ready)
      select counted.queue, sum(counted.scheduled), sum(counted.ready)
      from (
        select ready.queue, 0 as scheduled, 1 as ready from ready
        union all select scheduled.queue, 1, 0 from scheduled
      ) as counted
      group by counted.queue
    )
    select ready.queue, ready.lane, min(ready.rank) as rank, null::bigint as due_at from ready group by ready.queue, ready.lane
    union all
    select null, null, null, min(scheduled.due_at) from scheduled having count(*) > 0
  loop
    if v_place.queue is null then perform holdfast.notify_due(v_place.due_at - p_now);
    else perform holdfast.notify_ready(v_place.queue, v_place.lane, v_place.rank); end if;
  end loop;
end $$;
