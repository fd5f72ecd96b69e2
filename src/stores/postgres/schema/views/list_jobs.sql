-- One page of a list: the jobs between two ids that match, newest first or oldest first, at most p_limit of them. It is
-- one statement, so one snapshot. It reads at most about p_budget jobs in each table. unread is null if it reached the
-- end, otherwise the first id it did not read: everything before it is complete. looked is how many jobs it read. Both
-- are in every row; the job is null in the only row of an empty page.
--
-- Null for a filter means any. The ids that match come first, from as few columns as the filters need; then the jobs of
-- the page are read as a whole, each looked up (a limit or an offset keeps the planner from joining whole tables).
-- Batches are read in order of the bound that comes first; those that cannot match by queue or name are skipped unread.
-- In addition, batches that begin before the page reach into it, and strays are outside the bounds of their batch.
-- There may be thousands of these batches, so only those with the first ids are read.
create function holdfast.list_jobs(
  p_states text[], p_queues text[], p_names text[], p_fingerprints text[], p_tags text[],
  p_finished_from bigint, p_finished_before bigint, p_created_from bigint, p_created_before bigint,
  p_low uuid, p_high uuid, p_newest_first boolean, p_limit integer, p_budget integer
) returns table (looked bigint, unread uuid, job json) language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_only_running constant boolean := coalesce(p_states <@ '{running}', false);
  v_any constant boolean := p_states is null;
  v_order constant text := case when p_newest_first then 'desc' else 'asc' end;
  -- The bound of a batch that comes first, and "comes before".
  v_edge constant text := case when p_newest_first then 'high' else 'low' end;
  v_before constant text := case when p_newest_first then '>' else '<' end;
  v_reaches_in constant text := case when p_newest_first
    then 'holdfast.batches_around($11) as batch where batch.high > $11'
    else 'holdfast.batches_around($10) as batch where batch.low < $10' end;
  -- Only cancelled jobs have an index of their own.
  v_ended constant text := case when p_states && '{cancelled}' and not p_states && '{completed}'
    then 'not ended.completed' else 'true' end;
  v_dead constant text := holdfast.dead_between(case when v_any or 'dead' = any (p_states)
    then holdfast.dead_index(p_fingerprints, p_finished_from, p_finished_before) end, v_order);
  v_batch_matches constant text := '($2 is null or batch.queue = any ($2)) and ($3 is null or exists (
    select from unnest($3) as name where name between batch.first_name and batch.last_name))';
  v_matches constant text := '($1 is null or job.state = any ($1)) and ($2 is null or job.queue = any ($2))
    and ($3 is null or job.name = any ($3)) and ($4 is null or job.error ->> ''fingerprint'' = any ($4))
    and ($5 is null or holdfast.tags_of(job.facts) ?| $5)
    and ($6 is null or job.finished_at >= $6) and ($7 is null or job.finished_at < $7)
    and ($8 is null or job.created_at >= $8) and ($9 is null or job.created_at < $9)';
  -- Unpacking a batch is most of the work, and often its ids are enough.
  v_parts constant text := case
    when coalesce(p_names, p_fingerprints, p_tags) is not null or coalesce(p_created_from, p_created_before) is not null
    then 'json_array_elements((''['' || batch.jobs || '']'')::json)' else 'unnest(''{}''::json[])' end;
begin
  return query execute format($query$
    with ready as materialized (
      select job.id, %6$s as matches from (
        select ready.id, 'ready' as state, ready.queue, ready.name, ready.facts, ready.past -> 'error' as error,
          ready.created_at, null::bigint as finished_at
        from holdfast.ready as ready
        where ready.id between $10 and $11 and ($1 is null or 'ready' = any ($1))
        order by ready.id %1$s limit $13 + 1
      ) as job
    ), scheduled as materialized (
      select job.id, %6$s as matches from (
        select scheduled.id, 'scheduled' as state, scheduled.queue, scheduled.name, scheduled.facts,
          scheduled.past -> 'error' as error, scheduled.created_at, null::bigint as finished_at
        from holdfast.scheduled as scheduled
        where scheduled.id between $10 and $11 and ($1 is null or 'scheduled' = any ($1))
        order by scheduled.id %1$s limit $13 + 1
      ) as job
    ), dead as materialized (
      select job.id, %6$s as matches
      from (select 'dead' as state, dead.* from (%7$s) as dead) as job where ($1 is null or 'dead' = any ($1))
    ), ended as materialized (
      select job.id, %6$s as matches from (
        select ended.id, case when ended.completed then 'completed' else 'cancelled' end as state, ended.queue, ended.name,
          ended.facts, ended.past -> 'error' as error, ended.created_at, ended.finished_at
        from holdfast.ended as ended
        where ended.id between $10 and $11 and %8$s and ($1 is null or $1 && '{completed,cancelled}')
        order by ended.id %1$s limit $13 + 1
      ) as job
    ), batch as materialized (
      select here.token, here.claimed_at, here.edge, here.matches, here.size,
        row_number() over (order by here.edge %1$s, here.token) as number,
        sum(case when here.matches then here.size else 0 end) over (order by here.edge %1$s, here.token) as total
      from (
        select batch.token, batch.claimed_at, batch.%2$s as edge, batch.size, %5$s as matches
        from (
          (select * from holdfast.batch as batch
           where not batch.wide and batch.%2$s between $10 and $11 order by batch.%2$s %1$s limit $13 + 1)
          union all
          (select * from holdfast.batch as batch
           where batch.wide and batch.%2$s between $10 and $11 order by batch.%2$s %1$s limit $13 + 1)
        ) as batch
        where not $14 and ($1 is null or $1 && '{running,completed}')
        order by batch.%2$s %1$s limit $13 + 1
      ) as here
    ), read as materialized (
      select batch.* from batch where batch.number <= $13 and batch.total - batch.size < $13
    ), by_id as materialized (
      -- Each id with the batches it is in, and how many jobs the batches up to it have.
      select one.id, one.token, one.claimed_at, row_number() over (order by one.id %1$s, one.token) as number,
        sum(case when one.is_first then one.size end) over (order by one.id %1$s, one.token) as total, one.size
      from (
        select found.*, row_number() over (partition by found.token order by found.id %1$s) = 1 as is_first
        from (
          select id, batch.token, batch.claimed_at, batch.size
          from (select batch.* from %4$s) as batch cross join lateral unnest(batch.ids) as id
          where %5$s and id between $10 and $11 and not $14 and ($1 is null or $1 && '{running,completed}')
          union all
          select held.id, batch.token, batch.claimed_at, batch.size
          from holdfast.lease as lease
          cross join lateral (
            select batch.* from holdfast.batch as batch
            where batch.token = lease.token and batch.claimed_at = lease.claimed_at limit 1
          ) as batch
          cross join lateral unnest(batch.ids) with ordinality as held (id, place)
          where %9$s and ($1 is null or 'running' = any ($1)) and %5$s and held.id between $10 and $11
            and get_bit(lease.done, (held.place - 1)::integer) = 0
          order by 1 %1$s limit $13 + 1
        ) as found
      ) as one
    ), read_by_id as materialized (
      select by_id.* from by_id where by_id.number <= $13 and by_id.total - by_id.size < greatest($13, 20000)
    ), end_of_scan as materialized (
      select last.id from (
        (select ready.id from ready order by ready.id %1$s offset $13 limit 1)
        union all (select scheduled.id from scheduled order by scheduled.id %1$s offset $13 limit 1)
        union all (select dead.id from dead order by dead.id %1$s offset $13 limit 1)
        union all (select ended.id from ended order by ended.id %1$s offset $13 limit 1)
        union all (select batch.edge from batch where batch.number > (select count(*) from read)
          order by batch.number limit 1)
        union all (select by_id.id from by_id where by_id.number > (select count(*) from read_by_id)
          order by by_id.number limit 1)
      ) as last order by last.id %1$s limit 1
    ), wanted as materialized (
      select array_agg(distinct taken.token) as tokens, min(taken.claimed_at) as since, max(taken.claimed_at) as until
      from (
        select read.token, read.claimed_at from read where read.matches
        union all select read_by_id.token, read_by_id.claimed_at from read_by_id
      ) as taken
    ), open as materialized (
      select lease.token, lease.done from holdfast.lease as lease
      where lease.token = any ((select wanted.tokens from wanted)::bigint[])
    ), closed as materialized (
      select history.token, history.finished_at, history.mask from holdfast.history as history
      where history.token = any ((select wanted.tokens from wanted)::bigint[])
        and history.finished_at >= (select wanted.since from wanted) and ($1 is null or 'completed' = any ($1))
    ), packed as (
      select job.id, job.token from (
        select place.id, batch.token, batch.queue, unpacked.name, unpacked.facts, unpacked.past -> 'error' as error,
          unpacked.created_at, closed.finished_at, case when open.token is null then 'completed' else 'running' end as state
        from holdfast.batch as batch
        cross join lateral rows from (unnest(batch.ids), %10$s) with ordinality as place (id, job, number)
        cross join lateral holdfast.unpack_job(place.job) as unpacked
        left join open on open.token = batch.token and get_bit(open.done, (place.number - 1)::integer) = 0
        left join closed on closed.token = batch.token
          and (closed.mask is null or get_bit(closed.mask, (place.number - 1)::integer) = 1)
        where batch.token = any ((select wanted.tokens from wanted)::bigint[])
          and batch.claimed_at between (select wanted.since from wanted) and (select wanted.until from wanted)
          and place.id between $10 and $11 and (open.token is not null or closed.token is not null)
      ) as job where %6$s
    ), found as materialized (
      select job.id, job.token from (
        select ready.id, null::bigint as token from ready where ready.matches
        union all select scheduled.id, null from scheduled where scheduled.matches
        union all select dead.id, null from dead where dead.matches
        union all select ended.id, null from ended where ended.matches
        union all select packed.id, packed.token from packed
      ) as job
      where coalesce(job.id %3$s (select end_of_scan.id from end_of_scan), true)
      order by job.id %1$s limit $12
    ), whole as (
      select job.* from found cross join lateral (
        select job.* from holdfast.job as job where job.id = found.id offset 0
      ) as job where found.token is null
      union all
      select job.* from (
        select found.token, array_agg(found.id) as ids from found where found.token is not null group by found.token
      ) as pack
      cross join lateral (
        select job.* from holdfast.packed_job as job where job.token = pack.token and job.id = any (pack.ids) offset 0
      ) as job
    )
    select (select count(*) from ready) + (select count(*) from scheduled) + (select count(*) from dead)
        + (select count(*) from ended) + (select count(distinct by_id.id) from by_id)
        + coalesce((select sum(case when read.matches then read.size else 1 end) from read), 0)::bigint,
      (select end_of_scan.id from end_of_scan), to_json(page)
    from (select) as one
    left join (
      select whole.*, case when whole.payload is null then
        (select large.body from holdfast.payload as large where large.id = whole.id) end as large_payload
      from whole
    ) as page on true
    order by page.id %1$s
  $query$,
    v_order, v_edge, v_before, v_reaches_in, v_batch_matches, v_matches, v_dead, v_ended,
    case when v_only_running then 'true' else
      'lease.strays is not null and get_bit(lease.strays, (held.place - 1)::integer) = 1' end, v_parts)
  using p_states, p_queues, p_names, p_fingerprints, p_tags, p_finished_from, p_finished_before, p_created_from,
    p_created_before, p_low, p_high, p_limit, p_budget, v_only_running;
end $$;
