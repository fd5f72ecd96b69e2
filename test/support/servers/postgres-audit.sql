-- Recounts a store from its jobs and compares everything that is derived from them. For tests, at rest: one statement, a row
-- for each thing that is wrong.
with open_job as (
  select job.id from holdfast.lease as lease join holdfast.batch as batch on batch.token = lease.token
  cross join lateral unnest(batch.ids) with ordinality as job (id, place)
  where get_bit(lease.done, (job.place - 1)::integer) = 0
), packed as (
  select job.id, history.queue
  from holdfast.history as history join holdfast.batch as batch on batch.token = history.token
  cross join lateral unnest(batch.ids) with ordinality as job (id, place)
  where history.mask is null or get_bit(history.mask, (job.place - 1)::integer) = 1
), single as (
  select id, queue, 'ready' as state, payload is null as has_large from holdfast.ready
  union all select id, queue, 'scheduled', payload is null from holdfast.scheduled
  union all select id, queue, 'dead', payload is null from holdfast.dead
  union all select id, queue, case when completed then 'completed' else 'cancelled' end, payload is null from holdfast.ended
), placed as (
  select id from single union all select id from open_job union all select id from packed
), counted as (
  select queue, count(*) filter (where state = 'scheduled') as scheduled, count(*) filter (where state = 'ready') as ready,
    count(*) filter (where state = 'completed') as completed, count(*) filter (where state = 'dead') as dead,
    count(*) filter (where state = 'cancelled') as cancelled
  from (select queue, state from single union all select queue, 'completed' from packed) as job
  group by queue
)
select format('%s counts %s, and there are %s', queue, told, found) as wrong
from (
  select coalesce(status.queue, counted.queue) as queue,
    row(status.scheduled, status.ready, status.completed, status.dead, status.cancelled)::text as told,
    row(coalesce(counted.scheduled, 0), coalesce(counted.ready, 0), coalesce(counted.completed, 0),
      coalesce(counted.dead, 0), coalesce(counted.cancelled, 0))::text as found
  from holdfast.queue_status as status full join counted on counted.queue = status.queue
) as compared
where told <> found
union all
select format('job %s is in %s places', id, count(*)) from placed group by id having count(*) > 1
union all
select format('payload of %s is left, and the job is gone', large.id) from holdfast.payload as large
where not exists (select from placed where placed.id = large.id)
union all
select format('%s job %s lacks its payload', single.state, single.id) from single
where single.has_large and not exists (select from holdfast.payload as large where large.id = single.id)
union all
select format('%s job %s has its payload twice', single.state, single.id) from single
where not single.has_large and exists (select from holdfast.payload as large where large.id = single.id)
union all
select format('batch %s has neither lease nor history', batch.token) from holdfast.batch as batch
where not exists (select from holdfast.lease as lease where lease.token = batch.token)
  and not exists (select from holdfast.history as history where history.token = batch.token)
union all
select format('%s of %s has no batch', of_batch.what, of_batch.token)
from (
  select 'lease' as what, token, claimed_at from holdfast.lease
  union all select 'history', token, claimed_at from holdfast.history
) as of_batch
where not exists (
  select from holdfast.batch as batch where batch.token = of_batch.token and batch.claimed_at = of_batch.claimed_at
)
union all
select format('history of %s has %s jobs, and says %s', history.token, cardinality(history.run_ms), history.size)
from holdfast.history as history join holdfast.batch as batch on batch.token = history.token
where (history.size, history.size) is distinct from
  (cardinality(history.run_ms), coalesce(length(replace(history.mask::text, '0', '')), batch.size))
union all
select format('lease %s is settled to its end', lease.token) from holdfast.lease as lease
where position(B'0' in lease.done) = 0
union all
select format('key %s is held by %s, which is not unfinished', held.key, held.job) from holdfast.unique_key as held
where held.until is null and not exists (
  select from single where single.id = held.job and single.state in ('ready', 'scheduled')
) and not exists (select from open_job where open_job.id = held.job)
