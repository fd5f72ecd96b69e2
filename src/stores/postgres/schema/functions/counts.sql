-- Adds up to p_limit changes of counts to the rows in queue. Returns how many, and the block of the last one, or null if it
-- found none. Readers see each change exactly once, before and after. One session compacts at a time; another one returns at
-- once, so that no session waits for another one here.
--
-- It reads from block p_block on. Under an old open transaction, deleted rows stay at the start of the table, and PostgreSQL
-- 14 and later can skip them. The view queue_status has to read all of them.
create function holdfast.compact_counts(p_limit integer, p_block bigint, out compacted integer, out block bigint)
language plpgsql set enable_seqscan = off as $$
declare
  v_places tid[];
begin
  compacted := 0;
  if not pg_try_advisory_xact_lock('holdfast.count_change'::regclass::oid::integer, 0) then return; end if;
  v_places := array(
    select change.ctid from holdfast.count_change as change where change.ctid >= format('(%s,0)', p_block)::tid
    limit p_limit
  );
  if v_places = '{}' then return; end if;
  with gone as (
    delete from holdfast.count_change as change where change.ctid = any (v_places) returning change.*
  ), added as (
    insert into holdfast.queue as queue (name, scheduled, ready, completed, dead, cancelled)
    select gone.queue, sum(gone.scheduled), sum(gone.ready), sum(gone.completed), sum(gone.dead), sum(gone.cancelled)
    from gone group by gone.queue order by gone.queue
    on conflict (name) do update set scheduled = queue.scheduled + excluded.scheduled, ready = queue.ready + excluded.ready,
      completed = queue.completed + excluded.completed, dead = queue.dead + excluded.dead,
      cancelled = queue.cancelled + excluded.cancelled
  )
  select count(*) into compacted from gone;
  block := split_part(trim('()' from v_places[cardinality(v_places)]::text), ',', 1);
end $$;
