-- One job by its id, from one snapshot: a job that moves meanwhile is neither missed nor found twice.
create function holdfast.get_job(p_id uuid) returns setof holdfast.job language sql stable as $$
  select job.* from holdfast.job as job where job.id = p_id
  union all
  select job.* from holdfast.find_batches(p_id) as found
  join holdfast.packed_job as job on job.token = found.token and job.id = p_id
$$;

-- The same for several, as holdfast.list_jobs returns jobs.
create function holdfast.get_jobs(p_ids uuid[]) returns table (job json) language sql stable as $$
  select to_json(found) from (
    select job.*, apart.body as payload_apart
    from (select distinct id from unnest(p_ids) as id) as asked
    cross join lateral holdfast.get_job(asked.id) as job
    left join holdfast.payload as apart on job.payload is null and apart.id = job.id
  ) as found
$$;
