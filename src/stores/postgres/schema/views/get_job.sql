-- Jobs by their ids, from one snapshot: a job that moves meanwhile is neither missed nor found twice. Jobs of one batch
-- are unpacked together. Leases with strays are searched for jobs that are nowhere else.
create function holdfast.find_jobs(p_ids uuid[]) returns setof holdfast.job language plpgsql stable rows 1
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  return query
    with asked as materialized (
      select distinct id from unnest(p_ids) as id
    ), own as materialized (
      select job.* from asked cross join lateral (
        select job.* from holdfast.job as job where job.id = asked.id offset 0
      ) as job
    ), within_bounds as materialized (
      select job.* from (
        select found.token, array_agg(asked.id) as ids
        from asked cross join lateral holdfast.find_within_bounds(asked.id) as found
        where not exists (select from own where own.id = asked.id) group by found.token
      ) as pack
      cross join lateral (
        select job.* from holdfast.packed_job as job where job.token = pack.token and job.id = any (pack.ids) offset 0
      ) as job
    )
    select own.* from own
    union all
    select within_bounds.* from within_bounds
    union all
    select job.* from asked cross join lateral holdfast.find_as_stray(asked.id) as found
    cross join lateral (
      select job.* from holdfast.packed_job as job where job.token = found.token and job.id = asked.id offset 0
    ) as job
    where not exists (select from own where own.id = asked.id)
      and not exists (select from within_bounds where within_bounds.id = asked.id);
end $$;

create function holdfast.get_job(p_id uuid) returns setof holdfast.job language sql stable rows 1 as $$
  select job.* from holdfast.find_jobs(array[p_id]) as job
$$;

-- As holdfast.list_jobs returns jobs.
create function holdfast.get_jobs(p_ids uuid[]) returns table (job json) language sql stable as $$
  select to_json(found) from (
    select job.*, case when job.payload is null then
      (select large.body from holdfast.payload as large where large.id = job.id) end as large_payload
    from holdfast.find_jobs(p_ids) as job
  ) as found
$$;
