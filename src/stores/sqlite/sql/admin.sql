-- Reads for people, and the scans behind lists and bulk changes.

-- name: queues
select * from holdfast_queue order by name;

-- name: setPaused
insert into holdfast_queue (name, paused) values (?, ?) on conflict (name) do update set paused = excluded.paused;

-- name: isReady
select 1 as found from holdfast_ready where queue = ? and suspect = ? and head = ? and due = ? and id = ?;

-- name: isScheduled
select 1 as found from holdfast_scheduled where due = ? and seq = ?;

-- name: scanUp
-- The next jobs of a scan in order of id, from one id to another, exclusive.
select * from holdfast_job where id > ? and id < ? order by id limit ?;

-- name: scanDown
select * from holdfast_job where id > ? and id < ? order by id desc limit ?;

-- name: leasedJobs
select lease.*, leased.seqs from holdfast_lease as lease join holdfast_leased as leased using (token) order by token;

-- name: idsEnded
-- Without an id if the job itself is missing.
select job.id, ended.seq from holdfast_ended as ended left join holdfast_job as job using (seq) where ended.state = ?;

-- name: idsReady
select id, seq from holdfast_ready;

-- name: idsScheduled
select job.id, scheduled.seq from holdfast_scheduled as scheduled left join holdfast_job as job using (seq);

-- name: idBySeq
select id, seq from holdfast_job where seq = ?;

-- name: readyQueues
-- Queues that have a ready job.
select name from holdfast_queue
where paused = 0 and exists (select 1 from holdfast_ready as ready where ready.queue = name);

-- name: countedJobs
-- How many jobs there are, and how many were counted as they moved.
select (select count(*) from holdfast_job) as jobs,
  (select coalesce(sum(scheduled + ready + running + completed + dead + cancelled), 0) from holdfast_queue) as counted;

-- name: dataVersion
-- Changes whenever another connection has committed.
pragma data_version;
