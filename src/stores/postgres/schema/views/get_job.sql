-- One job by its id, from one snapshot: a job that moves meanwhile is neither missed nor found twice.
create function holdfast.get_job(p_id uuid) returns setof holdfast.job language plpgsql stable rows 1
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  return query
    with own as materialized (
      select job.* from holdfast.job as job where job.id = p_id
    ), within_bounds as materialized (
      select job.* from holdfast.find_within_bounds(p_id) as found
      cross join lateral (
        select job.* from holdfast.packed_job as job where job.token = found.token and job.id = p_id offset 0
      ) as job
      where not exists (select from own)
    )
    select own.* from own
    union all
    select within_bounds.* from within_bounds
    union all
    select job.* from holdfast.find_as_stray(p_id) as found
    cross join lateral (
      select job.* from holdfast.packed_job as job where job.token = found.token and job.id = p_id offset 0
    ) as job
    where not exists (select from own) and not exists (select from within_bounds);
end $$;

-- The same for several, as holdfast.list_jobs returns jobs.
create function holdfast.get_jobs(p_ids uuid[]) returns table (job json) language sql stable as $$
  select to_json(found) from (
    select job.*, case when job.payload is null then
      (select apart.body from holdfast.payload as apart where apart.id = job.id) end as payload_apart
    from (select distinct id from unnest(p_ids) as id) as asked
    cross join lateral holdfast.get_job(asked.id) as job
  ) as found
$$;
