-- The index that finds the dead letters of a filter with the fewest reads: time, fingerprint, or id. Time counts as
-- narrow up to 20,000 dead letters, which take some milliseconds to sort by id.
create function holdfast.dead_index(p_fingerprints text[], p_finished_from bigint, p_finished_before bigint)
returns text language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_most constant integer := 20000;
begin
  if coalesce(p_finished_from, p_finished_before) is not null and v_most >= (
    select count(*) from (
      select from holdfast.dead as dead
      where dead.finished_at >= coalesce(p_finished_from, 0)
        and dead.finished_at < coalesce(p_finished_before, 9223372036854775807)
      limit v_most + 1
    ) as letters
  ) then
    return 'time';
  end if;
  return case when cardinality(p_fingerprints) <= 20 then 'fingerprint' else 'id' end;
end $$;

-- SQL that selects dead letters between two ids in the order given (asc or desc), by one of those indexes: those that
-- match by the index's columns. A limit within a lateral join forces the planner to look each one up, and an order by
-- fingerprint (which = would make pointless) to use that index. It takes fingerprints as $4, times as $6 and $7, ids as
-- $10 and $11, and the limit as $13.
create function holdfast.dead_between(p_index text, p_order text) returns text language sql immutable as $$
  select format(case p_index
    when 'time' then 'select dead.* from (
        with finished as materialized (
          select dead.id from holdfast.dead as dead
          where dead.finished_at >= coalesce($6, 0) and dead.finished_at < coalesce($7, 9223372036854775807)
        )
        select finished.id from finished where finished.id between $10 and $11 order by finished.id %1$s limit $13 + 1
      ) as first
      cross join lateral (select dead.* from holdfast.dead as dead where dead.id = first.id limit 1) as dead'
    when 'fingerprint' then 'select dead.* from (
        select asked_for.id from (select distinct fingerprint from unnest($4) as fingerprint) as asked
        cross join lateral (
          select dead.id from holdfast.dead as dead
          where dead.fingerprint between asked.fingerprint and asked.fingerprint and dead.id between $10 and $11
          order by dead.fingerprint %1$s, dead.id %1$s limit $13 + 1
        ) as asked_for order by asked_for.id %1$s limit $13 + 1
      ) as first
      cross join lateral (select dead.* from holdfast.dead as dead where dead.id = first.id limit 1) as dead'
    else 'select dead.* from holdfast.dead as dead where dead.id between $10 and $11 order by dead.id %1$s limit $13 + 1'
  end, p_order)
$$;
