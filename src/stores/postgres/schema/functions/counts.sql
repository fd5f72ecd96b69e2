-- Adds the changes of counts to the queues. Readers see each change exactly once, before and after.
create function holdfast.compact_counts(p_limit integer) returns integer language sql as $$
  with gone as (
    delete from holdfast.count_change as change
    where change.ctid = any (array(select picked.ctid from holdfast.count_change as picked limit p_limit for update skip locked))
    returning change.*
  ), added as (
    insert into holdfast.queue as queue (name, scheduled, ready, completed, dead, cancelled)
    select gone.queue, sum(gone.scheduled), sum(gone.ready), sum(gone.completed), sum(gone.dead), sum(gone.cancelled)
    from gone group by gone.queue order by gone.queue
    on conflict (name) do update set scheduled = queue.scheduled + excluded.scheduled, ready = queue.ready + excluded.ready,
      completed = queue.completed + excluded.completed, dead = queue.dead + excluded.dead,
      cancelled = queue.cancelled + excluded.cancelled
  )
  select count(*)::integer from gone
$$;
