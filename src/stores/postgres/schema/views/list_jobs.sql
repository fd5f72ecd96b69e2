-- One page of a list: the jobs between two ids that match, newest first or oldest first, at most p_limit of them. It is one
-- statement, so one snapshot. It looks at about p_budget jobs in each table at most. unread is null if it reached the end,
-- otherwise the first id it did not look at: everything before it is complete. looked is how many jobs it examined. Both stand
-- in every row; the job is null in the only row of an empty page.
--
-- Null for a filter means any. Batches are read in order of the bound that comes first; those that cannot match by queue or
-- name are passed over unread. Besides, batches that begin before the page reach into it. There may be thousands of those, so
-- only those are unpacked that have the first ids.
create function holdfast.list_jobs(
  p_states text[], p_queues text[], p_names text[], p_fingerprints text[], p_tags text[],
  p_finished_from bigint, p_finished_before bigint, p_created_from bigint, p_created_before bigint,
  p_low uuid, p_high uuid, p_newest_first boolean, p_limit integer, p_budget integer
) returns table (looked bigint, unread uuid, job json) language plpgsql stable
set enable_seqscan = off set jit = off as $$
declare
  v_span constant bigint := holdfast.batch_span_ms();
  v_only_running constant boolean := coalesce(p_states <@ '{running}', false);
begin
  -- %1$s: the order. %2$s: the bound of a batch that comes first. %3$s: "comes before". %4$s: whether a batch reaches in.
  -- %5$s: whether its queue and names can match.
  return query execute format($query$
    with ready as materialized (
      select job.* from holdfast.job as job
      where job.state = 'ready' and job.id between $10 and $11 and ($1 is null or 'ready' = any ($1))
      order by job.id %1$s limit $13 + 1
    ), scheduled as materialized (
      select job.* from holdfast.job as job
      where job.state = 'scheduled' and job.id between $10 and $11 and ($1 is null or 'scheduled' = any ($1))
      order by job.id %1$s limit $13 + 1
    ), dead as materialized (
      select job.* from holdfast.job as job
      where job.state = 'dead' and job.id between $10 and $11 and ($1 is null or 'dead' = any ($1))
      order by job.id %1$s limit $13 + 1
    ), ended as materialized (
      select job.* from holdfast.job as job
      where job.state in ('completed', 'cancelled') and job.id between $10 and $11
        and ($1 is null or $1 && '{completed,cancelled}')
      order by job.id %1$s limit $13 + 1
    ), batch as materialized (
      select here.token, here.edge, here.matches, here.size,
        row_number() over (order by here.edge %1$s, here.token) as number,
        sum(case when here.matches then here.size else 0 end) over (order by here.edge %1$s, here.token) as total
      from (
        select batch.token, batch.%2$s as edge, batch.size, %5$s as matches
        from holdfast.batch as batch
        where batch.%2$s between $10 and $11 and not $14 and ($1 is null or $1 && '{running,completed}')
        order by batch.%2$s %1$s limit $13 + 1
      ) as here
    ), read as materialized (
      select batch.* from batch where batch.number <= $13 and batch.total - batch.size < $13
    ), reaching_in as materialized (
      select id, array_agg(batch.token) as tokens
      from holdfast.batch as batch cross join lateral unnest(batch.ids) as id
      where %4$s and %5$s and id between $10 and $11 and not $14 and ($1 is null or $1 && '{running,completed}')
      group by id order by id %1$s limit $13 + 1
    ), end_of_scan as materialized (
      select last.id from (
        (select ready.id from ready order by ready.id %1$s offset $13 limit 1)
        union all (select scheduled.id from scheduled order by scheduled.id %1$s offset $13 limit 1)
        union all (select dead.id from dead order by dead.id %1$s offset $13 limit 1)
        union all (select ended.id from ended order by ended.id %1$s offset $13 limit 1)
        union all (select batch.edge from batch where batch.number > (select count(*) from read)
          order by batch.number limit 1)
        union all (select reaching_in.id from reaching_in order by reaching_in.id %1$s offset $13 limit 1)
      ) as last order by last.id %1$s limit 1
    ), seen as materialized (
      select * from ready union all select * from scheduled union all select * from dead union all select * from ended
      union all
      select job.* from holdfast.packed_job as job
      where job.token = any (
        array(select read.token from read where read.matches)
        || array(select distinct token from reaching_in cross join lateral unnest(reaching_in.tokens) as token)
        || array(select lease.token from holdfast.lease as lease
          where ($14 or lease.strays is not null) and ($1 is null or 'running' = any ($1)))
      ) and job.id between $10 and $11
    ), matching as (
      select job.* from seen as job
      where ($1 is null or job.state = any ($1)) and ($2 is null or job.queue = any ($2))
        and ($3 is null or job.name = any ($3))
        and ($4 is null or coalesce(job.error, job.past -> 'error') ->> 'fingerprint' = any ($4))
        and ($5 is null or holdfast.tags_of(job.facts) ?| $5)
        and ($6 is null or job.finished_at >= $6) and ($7 is null or job.finished_at < $7)
        and ($8 is null or job.created_at >= $8) and ($9 is null or job.created_at < $9)
        and coalesce(job.id %3$s (select end_of_scan.id from end_of_scan), true)
      order by job.id %1$s limit $12
    )
    select (select count(*) from ready) + (select count(*) from scheduled) + (select count(*) from dead)
        + (select count(*) from ended) + (select count(*) from reaching_in)
        + coalesce((select sum(read.size) from read), 0)::bigint,
      (select end_of_scan.id from end_of_scan), to_json(found)
    from (select) as one
    left join (
      select matching.*, apart.body as payload_apart from matching
      left join holdfast.payload as apart on matching.payload is null and apart.id = matching.id
    ) as found on true
    order by found.id %1$s
  $query$,
    case when p_newest_first then 'desc' else 'asc' end, case when p_newest_first then 'high' else 'low' end,
    case when p_newest_first then '>' else '<' end,
    case when p_newest_first
      then 'batch.high > $11 and batch.high <= holdfast.id_at(holdfast.id_ms($11) + $15) and batch.low <= $11'
      else 'batch.low < $10 and batch.low >= holdfast.id_at(holdfast.id_ms($10) - $15) and batch.high >= $10' end,
    '($2 is null or batch.queue = any ($2)) and ($3 is null or exists (
      select from unnest($3) as name where name between batch.first_name and batch.last_name))'
  )
  using p_states, p_queues, p_names, p_fingerprints, p_tags, p_finished_from, p_finished_before, p_created_from,
    p_created_before, p_low, p_high, p_limit, p_budget, v_only_running, v_span;
end $$;
