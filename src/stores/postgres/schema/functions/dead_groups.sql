-- Groups of dead letters that failed alike, among the first p_limit that match between two ids, oldest first. looked and unread as
-- in holdfast.list_jobs; the group is null in the only row of an empty answer.
create function holdfast.dead_groups(
  p_queues text[], p_names text[], p_fingerprints text[], p_tags text[],
  p_finished_from bigint, p_finished_before bigint, p_created_from bigint, p_created_before bigint,
  p_low uuid, p_high uuid, p_limit integer, p_budget integer
) returns table (looked bigint, unread uuid, dead_group json) language sql stable set enable_seqscan = off as $$
  with seen as materialized (
    select dead.id, dead.queue, dead.name, dead.fingerprint, dead.finished_at, dead.created_at, dead.facts, dead.error,
      row_number() over (order by dead.id) as number
    from (
      select * from holdfast.dead as dead where dead.id between p_low and p_high order by dead.id limit p_budget + 1
    ) as dead
  ), matching as materialized (
    select seen.*, row_number() over (order by seen.id) as place from seen
    where seen.number <= p_budget and (p_queues is null or seen.queue = any (p_queues))
      and (p_names is null or seen.name = any (p_names))
      and (p_fingerprints is null or seen.fingerprint = any (p_fingerprints))
      and (p_tags is null or holdfast.tags_of(seen.facts) ?| p_tags)
      and (p_finished_from is null or seen.finished_at >= p_finished_from)
      and (p_finished_before is null or seen.finished_at < p_finished_before)
      and (p_created_from is null or seen.created_at >= p_created_from)
      and (p_created_before is null or seen.created_at < p_created_before)
  ), alike as (
    select matching.queue, matching.name, matching.fingerprint, count(*)::integer as count,
      min(matching.finished_at) as "firstAt", max(matching.finished_at) as "lastAt",
      (array_agg(matching.id order by matching.finished_at desc, matching.id desc))[1] as newest
    from matching where matching.place <= p_limit
    group by matching.queue, matching.name, matching.fingerprint
  )
  select (select count(*) from seen where seen.number <= p_budget),
    (select first.id from (
      select matching.id from matching where matching.place = p_limit + 1
      union all select seen.id from seen where seen.number = p_budget + 1
    ) as first order by first.id limit 1),
    to_json(one)
  from (select) as always
  left join (
    select alike.*, newest.error ->> 'kind' as kind, newest.error ->> 'message' as message
    from alike join matching as newest on newest.id = alike.newest
    order by alike.count desc, alike."lastAt" desc
  ) as one on true
$$;
