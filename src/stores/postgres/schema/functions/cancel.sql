-- Cancels a job wherever it is. cancelled: it was waiting, and never runs again. requested: a worker holds it and is told
-- (the first reason stays). heard: that worker has reported that the cancel took effect. final: it is too late. missing:
-- there is no such job.
create function holdfast.cancel(p_id uuid, p_reason text) returns text language plpgsql as $$
declare
  v_job holdfast.waiting;
  v_found record;
  v_lease holdfast.lease;
  v_state text;
begin
  -- A job that moves while it is looked for is looked for again.
  loop
    v_job := holdfast.take_waiting(p_id);
    if v_job.id is not null then
      insert into holdfast.ended (id, finished_at, due_at, created_at, attempt, crashes, run_ms, completed, queue, name,
        unique_key, past, facts, payload, reason)
      values (p_id, holdfast.now_ms(), v_job.due_at, v_job.created_at, v_job.attempt, v_job.crashes, 0, false, v_job.queue,
        v_job.name, v_job.unique_key, v_job.past, v_job.facts, v_job.payload, p_reason);
      insert into holdfast.count_change (queue, cancelled) values (v_job.queue, 1);
      if v_job.unique_key is not null then perform holdfast.free_keys(array[v_job.unique_key], array[p_id]); end if;
      return 'cancelled';
    end if;
    for v_found in select * from holdfast.find_batches(p_id) loop
      select * into v_lease from holdfast.lease as lease where lease.token = v_found.token for update;
      continue when not found or get_bit(v_lease.done, v_found.place) = 1;
      if v_lease.cancels -> v_found.place::text ? 'heard' then return 'heard'; end if;
      if not coalesce(v_lease.cancels ? v_found.place::text, false) then
        update holdfast.lease as lease
        set cancels = coalesce(lease.cancels, '{}')
          || jsonb_build_object(v_found.place::text, jsonb_build_object('reason', p_reason))
        where lease.token = v_lease.token;
      end if;
      perform pg_notify(holdfast.channel(), 'cancel ' || v_lease.worker);
      return 'requested';
    end loop;
    select one.state into v_state from holdfast.get_job(p_id) as one;
    if not found then return 'missing'; end if;
    if v_state in ('completed', 'dead', 'cancelled') then return 'final'; end if;
  end loop;
end $$;
