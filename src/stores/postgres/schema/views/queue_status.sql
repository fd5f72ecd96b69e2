-- Jobs by queue and state, and when the oldest ready job became due. The cost depends on the number of queues, leases
-- and changes that are not compacted yet, not on the number of jobs.
--
-- oldest_ready_at reads the first job of each lane by rank. That is the job that became due first if all jobs of a lane
-- have the same head start. They differ if a queue's aging was changed while jobs waited, or if some jobs come from
-- add_job, which counts a minute per level because only the program knows a queue's aging. The time may then be too
-- late by that difference.
create view holdfast.queue_status as
  select counted.queue, bool_or(counted.paused) as paused, sum(counted.scheduled)::bigint as scheduled,
    sum(counted.ready)::bigint as ready, sum(counted.running)::bigint as running,
    sum(counted.completed)::bigint as completed, sum(counted.dead)::bigint as dead,
    sum(counted.cancelled)::bigint as cancelled, (
      -- Crash suspects of all priorities share lane 10. There are few of them, so the first hundred are read.
      select min(first.due_at) from generate_series(0, 10) as lanes (lane)
      cross join lateral (
        select ready.due_at from holdfast.ready as ready
        where ready.queue = counted.queue and ready.lane = lanes.lane
        order by ready.rank, ready.id limit case when lanes.lane = 10 then 100 else 1 end
      ) as first
    ) as oldest_ready_at
  from (
    select queue.name as queue, queue.paused, queue.scheduled, queue.ready, 0 as running, queue.completed, queue.dead,
      queue.cancelled
    from holdfast.queue as queue
    union all
    select change.queue, false, change.scheduled, change.ready, 0, change.completed, change.dead, change.cancelled
    from holdfast.count_change as change
    union all
    select lease.queue, false, 0, 0, holdfast.bits(~ lease.done), 0, 0, 0 from holdfast.lease as lease
  ) as counted
  group by counted.queue;
