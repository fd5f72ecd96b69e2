-- The batches that have a job, newest first: the bounds of a batch reach a minute around its middle, see grant_lease. A job
-- that was claimed several times is in several batches. Strays are found only while they run.
create function holdfast.find_batches(p_id uuid) returns table (token bigint, claimed_at bigint, place integer)
language plpgsql stable set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
  return query
    select batch.token, batch.claimed_at, array_position(batch.ids, p_id) - 1
    from holdfast.batch as batch
    where batch.high >= p_id and batch.high <= holdfast.id_at(holdfast.id_ms(p_id) + holdfast.batch_span_ms())
      and batch.low <= p_id and p_id = any (batch.ids)
    union
    select batch.token, batch.claimed_at, array_position(batch.ids, p_id) - 1
    from holdfast.lease as lease
    join holdfast.batch as batch on batch.token = lease.token and batch.claimed_at = lease.claimed_at
    where lease.strays is not null and p_id = any (batch.ids)
    order by 1 desc;
end $$;
