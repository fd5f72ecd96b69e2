-- The batches whose bounds contain an id. Most lie within one block of ids, see id_bounds.sql: both bounds are in the
-- block of this id. The others are separate in the index; their bounds reach a minute around their middle, see
-- grant_lease. Each range has two ends for either bound, so that either of the two indexes works.
create function holdfast.batches_around(p_id uuid) returns setof holdfast.batch language sql stable as $$
  select batch.* from holdfast.batch as batch
  where not batch.wide and batch.high between p_id and holdfast.block_end(p_id)
    and batch.low between holdfast.block_start(p_id) and p_id
  union all
  select batch.* from holdfast.batch as batch
  where batch.wide
    and batch.high between p_id and holdfast.id_at(holdfast.id_ms(p_id) + holdfast.batch_span_ms())
    and batch.low between holdfast.id_at(holdfast.id_ms(p_id) - holdfast.batch_span_ms()) and p_id
$$;

-- Those of them that have the job. A job that was claimed several times is in several.
create function holdfast.find_within_bounds(p_id uuid) returns table (token bigint, claimed_at bigint, place integer)
language plpgsql stable rows 1
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  return query
    select batch.token, batch.claimed_at, array_position(batch.ids, p_id) - 1
    from holdfast.batches_around(p_id) as batch where p_id = any (batch.ids);
end $$;

-- The batches that have the job as a stray. It is there only while it runs. This reads the ids of every lease with strays.
create function holdfast.find_as_stray(p_id uuid) returns table (token bigint, claimed_at bigint, place integer)
language plpgsql stable rows 1
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  return query
    select lease.token, lease.claimed_at, array_position(batch.ids, p_id) - 1
    from holdfast.lease as lease
    cross join lateral (
      select batch.ids from holdfast.batch as batch
      where batch.token = lease.token and batch.claimed_at = lease.claimed_at limit 1
    ) as batch
    where lease.strays is not null and p_id = any (batch.ids);
end $$;

-- All batches that have the job, newest first.
create function holdfast.find_batches(p_id uuid) returns table (token bigint, claimed_at bigint, place integer)
language sql stable rows 1 as $$
  select found.* from holdfast.find_within_bounds(p_id) as found
  union
  select found.* from holdfast.find_as_stray(p_id) as found
  order by 1 desc
$$;
