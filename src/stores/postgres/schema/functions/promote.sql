-- Moves due jobs from scheduled to ready; returns how many, and when the next one is due.
create function holdfast.promote(p_limit integer, out promoted integer, out next_in bigint) language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_now constant bigint := holdfast.now_ms();
  v_places tid[];
  v_due record;
begin
  v_places := array(
    select scheduled.ctid from holdfast.scheduled as scheduled where scheduled.due_at <= v_now
    order by scheduled.due_at, scheduled.id limit p_limit
    for update skip locked
  );
  promoted := cardinality(v_places);
  if promoted > 0 then
    with due as (
      delete from holdfast.scheduled as scheduled where scheduled.ctid = any (v_places) returning scheduled.*
    ), counted as (
      insert into holdfast.count_change (queue, scheduled) select due.queue, - count(*) from due group by due.queue
    )
    select array_agg(due.id) as ids, array_agg(due.queue) as queues, array_agg(due.name) as names,
      array_agg(due.priority) as priorities, array_agg(due.head_start) as head_starts, array_agg(due.due_at) as dues,
      array_agg(due.created_at) as created, array_agg(due.attempt) as attempts, array_agg(due.crashes) as crashes,
      array_agg(due.unique_hold) as holds, array_agg(due.unique_key) as keys, array_agg(due.past) as pasts,
      array_agg(due.facts) as facts, array_agg(due.payload) as payloads
    into v_due from due;
    if cardinality(v_due.ids) <> promoted then raise exception 'a scheduled job is gone, although it is locked'; end if;
    perform holdfast.admit(v_now, v_due.ids, v_due.queues, v_due.names, v_due.priorities, v_due.head_starts, v_due.dues,
      v_due.created, v_due.attempts, v_due.crashes, v_due.holds, v_due.keys, v_due.pasts, v_due.facts, v_due.payloads);
  end if;
  next_in := (
    select greatest(scheduled.due_at - v_now, 0) from holdfast.scheduled as scheduled order by scheduled.due_at limit 1
  );
end $$;
