-- One row per job, for people and plain SQL. Read only. Jobs that are running or completed are unpacked one by one: use
-- holdfast.get_job(id) to look one up among many.
create view holdfast.job_queue as
  select job.id, job.name as job_type,
    coalesce(job.payload, (select large.body from holdfast.payload as large where large.id = job.id))::json as payload,
    job.state as status, (job.facts::json ->> 2)::smallint as priority, job.attempt as attempts,
    (job.facts::json ->> 4)::integer as max_attempts, job.queue, to_timestamp(job.due_at / 1000.0) as scheduled_for,
    to_timestamp(coalesce(job.claimed_at, job.finished_at - job.run_ms) / 1000.0) as started_at,
    to_timestamp(job.finished_at / 1000.0) as completed_at,
    coalesce(job.error, job.past -> 'error') ->> 'message' as error_message,
    to_timestamp(job.created_at / 1000.0) as created_at,
    to_timestamp(coalesce(job.finished_at, job.claimed_at, job.created_at) / 1000.0) as updated_at
  from (select * from holdfast.job union all select * from holdfast.packed_job) as job;
