-- Enqueues, claims, settles, workers.

-- name: flush
select answers from holdfast_intake where id = ?;

-- name: rememberFlush
insert into holdfast_intake (id, at, answers) values (?, ?, ?);

-- name: isPaused
select paused from holdfast_queue where name = ?;

-- name: nextHead
-- The next head start above a given one, and the oldest job that has it: call it until it returns nothing.
select head, due, id, seq from holdfast_ready
where queue = ? and suspect = ? and head > ?
order by head, due, id limit 1;

-- name: oldestReady
select due, id, seq from holdfast_ready where queue = ? and suspect = ? and head = ? order by due, id limit ?;

-- name: readyBodies
-- The jobs that oldestReady listed, up to its last one. Columns as in rows.ts.
select job.seq, job.id, job.name, job.queue, job.priority, job.head, job.due, job.created, job.attempt, job.max_attempts,
  job.crashes, job.max_crashes, job.unique_key, job.key_while, job.key_ms, job.sum, job.options, job.payload
from holdfast_ready as ready
join holdfast_job as job on job.seq = ready.seq
where ready.queue = ? and ready.suspect = ? and ready.head = ? and (ready.due, ready.id) <= (?, ?);

-- name: takeReady
-- Deletes what oldestReady listed, up to its last job.
delete from holdfast_ready where queue = ? and suspect = ? and head = ? and (due, id) <= (?, ?);

-- name: grantLease
insert into holdfast_lease (worker, queue, claimed_at, size, open, done, keyed) values (?, ?, ?, ?, ?, null, ?);

-- name: lastToken
select seq as token from sqlite_sequence where name = 'holdfast_lease';

-- name: writeLeased
insert into holdfast_leased (token, seqs) values (?, ?);

-- name: lease
select * from holdfast_lease where token = ?;

-- name: leased
select seqs from holdfast_leased where token = ?;

-- name: markSettled
update holdfast_lease set open = ?, done = ? where token = ?;

-- name: deleteLease
delete from holdfast_lease where token = ?;

-- name: deleteLeased
delete from holdfast_leased where token = ?;

-- name: revokedLease
select token from holdfast_revoked where token = ?;

-- name: revoke
insert into holdfast_revoked (token, done) values (?, ?);

-- name: cancelsOf
select position, reason, heard from holdfast_cancel where token = ?;

-- name: requestCancel
insert into holdfast_cancel (token, position, reason, heard) values (?, ?, ?, 0) on conflict do nothing;

-- name: hearCancel
update holdfast_cancel set heard = 1 where token = ? and position = ?;

-- name: deleteCancel
delete from holdfast_cancel where token = ? and position = ?;

-- name: deleteCancels
delete from holdfast_cancel where token = ?;

-- name: worker
select * from holdfast_worker where id = ?;

-- name: register
insert into holdfast_worker (id, lease_ms, expires_at, at_once, nth, process) values (?, ?, ?, ?, 0, ?)
on conflict (id) do update set lease_ms = excluded.lease_ms, expires_at = excluded.expires_at, process = excluded.process;

-- name: renew
update holdfast_worker set expires_at = ?, at_once = ?, nth = ? where id = ?;

-- name: renewLease
update holdfast_worker set expires_at = ? + lease_ms where id = ?;

-- name: deleteWorker
delete from holdfast_worker where id = ?;

-- name: leasesOf
select * from holdfast_lease where worker = ? order by token;

-- name: allLeases
select * from holdfast_lease order by token;

-- name: allWorkers
select * from holdfast_worker;

-- name: pausedQueues
select name from holdfast_queue where paused = 1;

-- name: unheardCancels
-- Workers that have not received a cancel yet.
select distinct worker from holdfast_lease where token in (select token from holdfast_cancel where heard = 0);

-- name: cancelAt
select heard from holdfast_cancel where token = ? and position = ?;
