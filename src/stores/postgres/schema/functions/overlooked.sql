-- The lowest rank of a ready job in each range, null for none, as JSON. Ranges are as in holdfast.claim. Locks nothing,
-- and reads every dead row of the ranges, so callers make them small. took_ms: how long that took. workers: number of
-- workers.
create function holdfast.overlooked(
  p_queue text, p_lanes smallint[], p_from bigint[], p_to bigint[], out ranks json, out took_ms integer, out workers integer
) language plpgsql stable
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_began constant timestamptz := clock_timestamp();
begin
  select coalesce(json_agg(first.rank order by here.place), '[]') into ranks
  from unnest(p_lanes, p_from, p_to) with ordinality as here (lane, low, high, place)
  left join lateral (
    select ready.rank from holdfast.ready as ready
    where ready.queue = p_queue and ready.lane = here.lane and ready.rank >= here.low and ready.rank < here.high
    order by ready.rank, ready.id limit 1
  ) as first on true;
  select count(*) into workers from holdfast.worker;
  took_ms := extract(epoch from clock_timestamp() - v_began) * 1000;
end $$;
