-- Makes a dead job ready again with all its attempts, and with another payload if one is given. False if it is not dead, or
-- if another job holds its unique key.
create function holdfast.replay(p_id uuid, p_payload text) returns boolean language plpgsql as $$
declare
  v_job holdfast.dead;
  v_holder uuid;
begin
  select * into v_job from holdfast.dead as dead where dead.id = p_id for update;
  if not found then return false; end if;
  if v_job.unique_key is not null then
    v_holder := holdfast.take_key(v_job.unique_key, p_id, v_job.unique_hold);
    if v_holder <> p_id then return false; end if;
  end if;
  delete from holdfast.dead as dead where dead.id = p_id;
  if p_payload is not null and v_job.payload is null then perform holdfast.delete_payloads(array[p_id]); end if;
  insert into holdfast.count_change (queue, dead) values (v_job.queue, -1);
  perform holdfast.put_waiting(row(p_id, v_job.queue, v_job.name, v_job.priority, v_job.head_start, holdfast.now_ms(),
    v_job.created_at, 0, 0, v_job.unique_hold, v_job.unique_key,
    coalesce(v_job.past, '{}') || jsonb_build_object('error', v_job.error), v_job.facts,
    coalesce(p_payload, v_job.payload))::holdfast.waiting);
  return true;
end $$;

-- Forgets a final job.
create function holdfast.discard(p_id uuid) returns boolean language plpgsql as $$
declare
  v_found record;
begin
  if holdfast.forget_dead(array[p_id]) + holdfast.forget_ended(array[p_id]) > 0 then return true; end if;
  for v_found in select * from holdfast.find_batches(p_id) loop
    if holdfast.forget_packed(v_found.token, array[v_found.place]) > 0 then return true; end if;
  end loop;
  return false;
end $$;

-- Applies one action to jobs in order of id; returns how many it changed. p_reason is for cancels, p_payload for replays.
create function holdfast.change(p_ids uuid[], p_action text, p_reason text, p_payload text) returns integer
language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_id uuid;
  v_changed integer := 0;
begin
  foreach v_id in array p_ids loop
    if (case p_action
      when 'replay' then holdfast.replay(v_id, p_payload)
      when 'discard' then holdfast.discard(v_id)
      when 'cancel' then holdfast.cancel(v_id, p_reason) in ('cancelled', 'requested', 'heard')
    end) then
      v_changed := v_changed + 1;
    end if;
  end loop;
  return v_changed;
end $$;

-- Changes a waiting job: edited, running, final or missing. Null leaves what it stands for as it is.
create function holdfast.edit(
  p_id uuid, p_payload text, p_priority smallint, p_head_start bigint, p_due_in bigint, p_due_at bigint
) returns text language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_now bigint;
  v_job holdfast.waiting;
  v_state text;
begin
  -- A job that moves while it is looked for is looked for again.
  loop
    v_job := holdfast.take_waiting(p_id);
    exit when v_job.id is not null;
    select one.state into v_state from holdfast.get_job(p_id) as one;
    if not found then return 'missing'; end if;
    if v_state = 'running' then return 'running'; end if;
    if v_state not in ('ready', 'scheduled') then return 'final'; end if;
  end loop;
  v_now := holdfast.now_ms();
  if p_payload is not null then
    if v_job.payload is null then perform holdfast.delete_payloads(array[p_id]); end if;
    v_job.payload := p_payload;
  end if;
  if p_due_at is not null then v_job.due_at := greatest(p_due_at, v_now); end if;
  if p_due_in is not null then v_job.due_at := v_now + p_due_in; end if;
  v_job.priority := coalesce(p_priority, v_job.priority);
  v_job.head_start := coalesce(p_head_start, v_job.head_start);
  v_job.facts := holdfast.facts_with(v_job.facts, null, p_priority, p_head_start);
  perform holdfast.put_waiting(v_job);
  return 'edited';
end $$;

-- Once this has committed, no claim takes from a paused queue: it waits for those under way.
create function holdfast.set_paused(p_queue text, p_paused boolean) returns void language plpgsql as $$
begin
  perform pg_advisory_xact_lock('holdfast.queue'::regclass::oid::integer, hashtext(p_queue));
  insert into holdfast.queue as queue (name, paused) values (p_queue, p_paused)
  on conflict (name) do update set paused = excluded.paused;
  if p_paused then perform pg_notify(holdfast.channel(), 'paused ' || p_queue);
  else perform holdfast.notify_ready(p_queue, -1::smallint, 0); end if;
end $$;
