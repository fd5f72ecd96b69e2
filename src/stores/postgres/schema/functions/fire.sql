-- Fires one tick of a schedule: advances the schedule and enqueues the tick's job, once. p_job is as in
-- holdfast.enqueue_unique.
create function holdfast.fire(p_id text, p_tick bigint, p_next bigint, p_job json) returns text language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_last bigint;
begin
  select schedule.last_tick into v_last from holdfast.schedule as schedule where schedule.id = p_id for update;
  if not found then return 'missing'; end if;
  -- If the last tick is in the future, the clock has been set back since. The schedule must fire nevertheless.
  if p_tick = v_last or (p_tick < v_last and v_last <= holdfast.now_ms()) then return 'already'; end if;
  update holdfast.schedule as schedule set last_tick = p_tick, next_tick = p_next where schedule.id = p_id;
  if not found then raise exception 'schedule % is gone, although it is locked', p_id; end if;
  -- The job's own id serves as the flush id: this step happens only once.
  perform holdfast.enqueue_unique((p_job ->> 'id')::uuid, json_build_array(p_job));
  return 'fired';
end $$;
