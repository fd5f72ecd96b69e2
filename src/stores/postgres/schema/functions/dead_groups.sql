-- Groups of dead letters with the same fingerprint, among the first p_limit that match between two ids, oldest first.
-- looked and unread as in holdfast.list_jobs; the group is null in the only row of an empty answer.
create function holdfast.dead_groups(
  p_queues text[], p_names text[], p_fingerprints text[], p_tags text[],
  p_finished_from bigint, p_finished_before bigint, p_created_from bigint, p_created_before bigint,
  p_low uuid, p_high uuid, p_limit integer, p_budget integer
) returns table (looked bigint, unread uuid, dead_group json) language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_index constant text := holdfast.dead_index(p_fingerprints, p_finished_from, p_finished_before);
  -- If all rows read so far match, there is no need to read more.
  v_budget constant integer := case
    when coalesce(p_queues, p_names, p_fingerprints, p_tags) is null
      and coalesce(p_finished_from, p_finished_before, p_created_from, p_created_before) is null
    then least(p_limit, p_budget) else p_budget end;
begin
  -- $1 and $14 are left out: the parameters are numbered as in holdfast.list_jobs, see holdfast.dead_between.
  return query execute format($query$
    with seen as materialized (
      select dead.id, dead.queue, dead.name, dead.fingerprint, dead.finished_at,
        row_number() over (order by dead.id) as number,
        ($2 is null or dead.queue = any ($2)) and ($3 is null or dead.name = any ($3))
          and ($4 is null or dead.fingerprint = any ($4)) and ($5 is null or holdfast.tags_of(dead.facts) ?| $5)
          and ($6 is null or dead.finished_at >= $6) and ($7 is null or dead.finished_at < $7)
          and ($8 is null or dead.created_at >= $8) and ($9 is null or dead.created_at < $9) as matches
      from (%s) as dead
    ), matching as materialized (
      select seen.*, row_number() over (order by seen.id) as place from seen where seen.number <= $13 and seen.matches
    ), alike as (
      select matching.queue, matching.name, matching.fingerprint, count(*)::integer as count,
        min(matching.finished_at) as "firstAt", max(matching.finished_at) as "lastAt",
        (array_agg(matching.id order by matching.finished_at desc, matching.id desc))[1] as newest
      from matching where matching.place <= $12
      group by matching.queue, matching.name, matching.fingerprint
    )
    select (select count(*) from seen where seen.number <= $13),
      (select first.id from (
        select matching.id from matching where matching.place = $12 + 1
        union all select seen.id from seen where seen.number = $13 + 1
      ) as first order by first.id limit 1),
      to_json(one)
    from (select) as always
    left join (
      select alike.*, newest.error ->> 'kind' as kind, newest.error ->> 'message' as message
      from alike cross join lateral (
        select dead.error from holdfast.dead as dead where dead.id = alike.newest limit 1
      ) as newest
      order by alike.count desc, alike."lastAt" desc
    ) as one on true
  $query$, holdfast.dead_between(v_index, 'asc'))
  using null::text[], p_queues, p_names, p_fingerprints, p_tags, p_finished_from, p_finished_before, p_created_from,
    p_created_before, p_low, p_high, p_limit, v_budget;
end $$;
