-- Cancels a job in any state. p_states, if given, limits it to jobs that are in one of these states now. Returns
--   cancelled  the job was waiting, and never runs again
--   requested  a worker holds it and is notified (the first reason stays)
--   heard      that worker has reported that the cancel took effect
--   final      it is too late
--   missing    there is no such job
--   other      its state is not one of p_states
create function holdfast.cancel(p_id uuid, p_reason text, p_states text[]) returns text language plpgsql as $$
declare
  v_outcome text;
  v_state text;
begin
  -- A job that moves during the search is searched for again.
  loop
    if holdfast.cancel_waiting(p_id, p_reason, p_states) then return 'cancelled'; end if;
    if p_states is null or 'running' = any (p_states) then
      v_outcome := holdfast.cancel_running(p_id, p_reason);
      if v_outcome is not null then return v_outcome; end if;
    end if;
    select one.state into v_state from holdfast.get_job(p_id) as one;
    if not found then return 'missing'; end if;
    if v_state in ('completed', 'dead', 'cancelled') then return 'final'; end if;
    if v_state <> all (p_states) then return 'other'; end if;
  end loop;
end $$;

-- Cancels a waiting job in one of these states (null: any); otherwise false.
create function holdfast.cancel_waiting(p_id uuid, p_reason text, p_states text[]) returns boolean language plpgsql as $$
declare
  v_job constant holdfast.waiting := holdfast.take_waiting(p_id, p_states);
begin
  if v_job.id is null then return false; end if;
  insert into holdfast.ended (id, finished_at, due_at, created_at, attempt, crashes, run_ms, completed, queue, name,
    unique_key, past, facts, payload, reason)
  values (p_id, holdfast.now_ms(), v_job.due_at, v_job.created_at, v_job.attempt, v_job.crashes, 0, false, v_job.queue,
    v_job.name, v_job.unique_key, v_job.past, v_job.facts, v_job.payload, p_reason);
  insert into holdfast.count_change (queue, cancelled) values (v_job.queue, 1);
  if v_job.unique_key is not null then perform holdfast.free_keys(array[v_job.unique_key], array[p_id]); end if;
  return true;
end $$;

-- Requests the cancel of a running job: requested or heard, or null if no lease holds it.
create function holdfast.cancel_running(p_id uuid, p_reason text) returns text language plpgsql as $$
declare
  v_found record;
  v_lease holdfast.lease;
begin
  select * into v_found from holdfast.open_leases(array[p_id]);
  if not found then return null; end if;
  select * into v_lease from holdfast.lease as lease where lease.token = v_found.token for update;
  if not found or get_bit(v_lease.done, v_found.place) = 1 then return null; end if;
  if v_lease.cancels -> v_found.place::text ? 'heard' then return 'heard'; end if;
  if not coalesce(v_lease.cancels ? v_found.place::text, false) then
    update holdfast.lease as lease
    set cancels = coalesce(lease.cancels, '{}')
      || jsonb_build_object(v_found.place::text, jsonb_build_object('reason', p_reason))
    where lease.token = v_lease.token;
    if not found then raise exception 'lease % is gone, although it is locked', v_lease.token; end if;
  end if;
  perform pg_notify(holdfast.channel(), 'cancel ' || v_lease.worker);
  return 'requested';
end $$;

-- The leases under which these jobs run. Takes no locks: locks on irrelevant leases would be held until the transaction
-- ends.
create function holdfast.open_leases(p_ids uuid[]) returns table (token bigint, place integer) language plpgsql stable as $$
begin
  return query
    select lease.token, found.place
    from unnest(p_ids) as asked
    cross join lateral holdfast.find_batches(asked) as found
    join holdfast.lease as lease on lease.token = found.token
    where get_bit(lease.done, found.place) = 0;
end $$;
