-- Promotion, retention, leadership, schedules and notes.

-- name: due
select due, seq from holdfast_scheduled where due <= ? order by due, seq limit ?;

-- name: nextDue
select due from holdfast_scheduled order by due, seq limit 1;

-- name: setAtOnce
update holdfast_worker set at_once = ? where id = ?;

-- name: oldestEnded
select ended.seq, ended.finished, job.queue, job.id from holdfast_ended as ended join holdfast_job as job using (seq)
where ended.state = ? order by ended.finished, job.id limit ?;

-- name: pruneFlushes
delete from holdfast_intake
where id in (select id from (select id, at from holdfast_intake order by id limit ?) where at < ?);

-- name: pruneKeys
delete from holdfast_unique_key where key in (select key from holdfast_unique_key where until <= ? limit ?);

-- name: space
-- Pages of the file, and how many of them are free.
select (select page_count from pragma_page_count) as pages, (select freelist_count from pragma_freelist_count) as free;

-- name: pruneNotes
delete from holdfast_note where until <= ?;

-- name: lead
insert into holdfast_leader (only, id, until, process) values (1, ?, ?, ?)
on conflict (only) do update set id = excluded.id, until = excluded.until, process = excluded.process
where holdfast_leader.id = excluded.id or holdfast_leader.until <= ?;

-- name: leader
select id, process from holdfast_leader;

-- name: resign
delete from holdfast_leader where id = ?;

-- name: putSchedule
insert into holdfast_schedule (id, spec, next_tick, last_tick) values (?, ?, ?, null)
on conflict (id) do update set spec = excluded.spec, next_tick = excluded.next_tick;

-- name: removeSchedule
delete from holdfast_schedule where id = ?;

-- name: schedules
select id, spec, next_tick, last_tick from holdfast_schedule order by id;

-- name: schedule
select id, spec, next_tick, last_tick from holdfast_schedule where id = ?;

-- name: moveSchedule
update holdfast_schedule set last_tick = ?, next_tick = ? where id = ?;

-- name: putNote
insert into holdfast_note (kind, id, text, until) values (?, ?, ?, ?)
on conflict (kind, id) do update set text = excluded.text, until = excluded.until;

-- name: removeNote
delete from holdfast_note where kind = ? and id = ? and (until is null or until > ?);

-- name: notes
select id, text from holdfast_note where kind = ? and (until is null or until > ?) order by id;
