-- Recounts an embedded store from its jobs and compares everything that is derived from them. For tests, at rest: one
-- statement, a row for each thing that is wrong.
with leased as (
  select lease.token, lease.queue, job.key as position, job.value as seq
  from holdfast_lease as lease join holdfast_leased as leased using (token), json_each(leased.seqs) as job
  where lease.done is null or substr(lease.done, job.key + 1, 1) = '0'
), placed as (
  select seq, queue, 'ready' as state from holdfast_ready
  union all select seq, job.queue, 'scheduled' from holdfast_scheduled join holdfast_job as job using (seq)
  union all select seq, queue, 'running' from leased
  union all select seq, job.queue, ended.state from holdfast_ended as ended join holdfast_job as job using (seq)
), counted as (
  select queue, count(*) filter (where state = 'scheduled') as scheduled, count(*) filter (where state = 'ready') as ready,
    count(*) filter (where state = 'running') as running, count(*) filter (where state = 'completed') as completed,
    count(*) filter (where state = 'dead') as dead, count(*) filter (where state = 'cancelled') as cancelled
  from placed group by queue
)
select format('%s counts %s, and there are %s', name, told, found) as wrong
from (
  select queue.name, format('%d %d %d %d %d %d', queue.scheduled, queue.ready, queue.running, queue.completed, queue.dead,
      queue.cancelled) as told,
    format('%d %d %d %d %d %d', counted.scheduled, counted.ready, counted.running, counted.completed, counted.dead,
      counted.cancelled) as found
  from holdfast_queue as queue left join counted on counted.queue = queue.name
)
where told <> found
union all
select format('queue %s is not counted', queue) from counted where queue not in (select name from holdfast_queue)
union all
select format('job %d is in %d places', seq, count(*)) from placed group by seq having count(*) > 1
union all
select format('job %s is nowhere', id) from holdfast_job where seq not in (select seq from placed)
union all
select format('%s lists the job %d, which is gone', state, seq) from placed
where seq not in (select seq from holdfast_job)
union all
select format('ready job %s differs from its entry', job.id)
from holdfast_ready as ready join holdfast_job as job using (seq)
where (ready.queue, ready.suspect, ready.head, ready.due, ready.id) <> (job.queue, job.crashes > 0, job.head, job.due, job.id)
union all
select format('scheduled job %s differs from its entry', job.id)
from holdfast_scheduled as scheduled join holdfast_job as job using (seq) where scheduled.due <> job.due
union all
select format('lease %d says that %d are open', token, open) from holdfast_lease as lease
where open <> (select count(*) from leased where leased.token = lease.token) or open = 0
union all
select format('the jobs of lease %d are left, and the lease is gone', token) from holdfast_leased
where token not in (select token from holdfast_lease)
union all
select format('a cancel is left of position %d of lease %d', position, token) from holdfast_cancel as cancel
where not exists (select 1 from leased where leased.token = cancel.token and leased.position = cancel.position)
union all
select format('a past is left of job %d, which is gone', seq) from holdfast_past
where seq not in (select seq from holdfast_job)
union all
select format('key %s is held by %s, which does not hold it', key, id) from holdfast_unique_key as held
where until is null and not exists (
  select 1 from holdfast_job as job join placed using (seq)
  where job.id = held.id and job.unique_key = held.key
    and (placed.state in ('ready', 'scheduled') or (placed.state = 'running' and job.key_while = 'unfinished'))
)
union all
select format('job %s waits without its key', job.id) from holdfast_job as job join placed using (seq)
where job.key_while = 'unfinished' and placed.state in ('ready', 'scheduled', 'running') and not exists (
  select 1 from holdfast_unique_key as held where held.key = job.unique_key and held.id = job.id
);
