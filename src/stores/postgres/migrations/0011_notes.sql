-- Notes: small texts that all processes share.

-- until: gone from then on, whether it is deleted yet or not; null stays. There are few, and they are renewed all the
-- time: an index on until would cost more than looking at all of them now and then.
create table holdfast.note (
  kind text collate "C" not null,
  id text collate "C" not null,
  text text not null,
  until bigint,
  primary key (kind, id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Forgets finished jobs, keys and notes whose time is over, and flushes that nobody repeats any more. Null for a count: no
-- limit.
create or replace function holdfast.prune(
  p_completed_ms bigint, p_dead_ms bigint, p_cancelled_ms bigint,
  p_max_completed bigint, p_max_dead bigint, p_max_cancelled bigint, p_flush_ms bigint, p_limit integer
) returns integer language plpgsql as $$
declare
  v_now constant bigint := holdfast.now_ms();
  v_pruned integer := 0;
begin
  delete from holdfast.intake
  where id in (select id from holdfast.intake where at < v_now - p_flush_ms order by at limit 10000);
  delete from holdfast.unique_key
  where key in (select key from holdfast.unique_key where until <= v_now order by key limit 10000 for update skip locked);
  -- Skipped where somebody renews it at this moment.
  delete from holdfast.note
  where (kind, id) in (select kind, id from holdfast.note where until <= v_now limit 10000 for update skip locked);
  v_pruned := holdfast.prune_history(false, v_now - p_completed_ms, p_max_completed, p_limit);
  if v_pruned < p_limit then
    v_pruned := v_pruned + holdfast.prune_dead(v_now - p_dead_ms, p_max_dead, p_limit - v_pruned);
  end if;
  if v_pruned < p_limit then
    v_pruned := v_pruned + holdfast.prune_history(true, v_now - p_cancelled_ms, p_max_cancelled, p_limit - v_pruned);
  end if;
  return v_pruned;
end $$;
