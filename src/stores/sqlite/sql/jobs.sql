-- The building blocks of every step: where a job is, its keys, its history, and the counts.

-- name: insertJob
insert into holdfast_job (id, created, name, queue, priority, head, due, attempt, max_attempts, crashes, max_crashes,
  unique_key, key_while, key_ms, sum, options, payload)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: jobBySeq
select * from holdfast_job where seq = ?;

-- name: jobById
select * from holdfast_job where id = ?;

-- name: rewriteJob
-- Everything but the id, the time of creation and the past of a job that waits.
update holdfast_job
set name = ?, queue = ?, priority = ?, head = ?, due = ?, attempt = ?, max_attempts = ?, crashes = ?, max_crashes = ?,
  unique_key = ?, key_while = ?, key_ms = ?, sum = ?, options = ?, payload = ?
where seq = ?;

-- name: comeBack
update holdfast_job set due = ?, attempt = ?, crashes = ?, sum = ? where seq = ?;

-- name: deleteJob
delete from holdfast_job where seq = ?;

-- name: intoReady
insert into holdfast_ready (queue, suspect, head, due, id, seq) values (?, ?, ?, ?, ?, ?);

-- name: outOfReady
delete from holdfast_ready where queue = ? and suspect = ? and head = ? and due = ? and id = ?;

-- name: intoScheduled
insert into holdfast_scheduled (due, seq) values (?, ?);

-- name: outOfScheduled
delete from holdfast_scheduled where due = ? and seq = ?;

-- name: intoEnded
insert into holdfast_ended (seq, state, finished, token, worker, run_ms, result, dropped, reason, sum)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: outOfEnded
delete from holdfast_ended where seq = ?;

-- name: endedBySeq
select * from holdfast_ended where seq = ?;

-- name: past
select error, fingerprint, attempts, log, progress, sum from holdfast_past where seq = ?;

-- name: writePast
insert into holdfast_past (seq, error, fingerprint, attempts, log, progress, sum) values (?, ?, ?, ?, ?, ?, ?)
on conflict (seq) do update
set error = excluded.error, fingerprint = excluded.fingerprint, attempts = excluded.attempts, log = excluded.log,
  progress = excluded.progress, sum = excluded.sum;

-- name: deletePast
delete from holdfast_past where seq = ?;

-- name: keyHolder
select id from holdfast_unique_key where key = ? and (until is null or until > ?);

-- name: takeKey
insert into holdfast_unique_key (key, id, until) values (?, ?, ?)
on conflict (key) do update set id = excluded.id, until = excluded.until;

-- name: freeKey
delete from holdfast_unique_key where key = ? and id = ? and until is null;

-- name: addQueue
insert into holdfast_queue (name) values (?) on conflict (name) do nothing;

-- name: count
update holdfast_queue
set scheduled = scheduled + ?, ready = ready + ?, running = running + ?, completed = completed + ?, dead = dead + ?,
  cancelled = cancelled + ?
where name = ?;

-- name: totals
select coalesce(sum(completed), 0) as completed, coalesce(sum(dead), 0) as dead, coalesce(sum(cancelled), 0) as cancelled
from holdfast_queue;
