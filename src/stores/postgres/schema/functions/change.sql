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
  if not found then raise exception 'dead letter % is gone, although it is locked', p_id; end if;
  if p_payload is not null and v_job.payload is null then perform holdfast.delete_payloads(array[p_id]); end if;
  insert into holdfast.count_change (queue, dead) values (v_job.queue, -1);
  perform holdfast.put_waiting(row(p_id, v_job.queue, v_job.name, v_job.priority, v_job.head_start, holdfast.now_ms(),
    v_job.created_at, 0, 0, v_job.unique_hold, v_job.unique_key,
    coalesce(v_job.past, '{}') || jsonb_build_object('error', v_job.error), v_job.facts,
    coalesce(p_payload, v_job.payload))::holdfast.waiting);
  return true;
end $$;

-- Deletes the final jobs among these that are in one of these states (null: any); returns how many it deleted. Takes its
-- locks in the order of holdfast.prune: history, leases by token, ended, dead. It holds no lease while it waits for history.
create function holdfast.discard(p_ids uuid[], p_states text[]) returns integer language plpgsql as $$
declare
  v_tokens bigint[];
  v_places integer[];
  v_discarded integer := 0;
begin
  if p_states is null or 'completed' = any (p_states) then
    select array_agg(packed.token), array_agg(packed.place) into v_tokens, v_places
    from (
      select distinct found.token, found.place
      from unnest(p_ids) as asked
      -- Strays are not in history: they have rows of their own in ended.
      cross join lateral holdfast.find_within_bounds(asked) as found
      join holdfast.history as history on history.token = found.token
      where history.mask is null or get_bit(history.mask, found.place) = 1
    ) as packed;
    perform from holdfast.history as history where history.token = any (v_tokens)
    order by history.finished_at, history.token for update;
    perform from holdfast.lease as lease where lease.token = any (v_tokens) order by lease.token for update;
    select coalesce(sum(holdfast.forget_packed(packed.token, packed.places)), 0) into v_discarded
    from (
      select job.token, array_agg(job.place) as places from unnest(v_tokens, v_places) as job (token, place)
      group by job.token order by job.token
    ) as packed;
  end if;
  v_discarded := v_discarded + holdfast.forget_ended(array(
    select ended.id from holdfast.ended as ended
    where ended.id = any (p_ids)
      and (p_states is null or case when ended.completed then 'completed' else 'cancelled' end = any (p_states))
    order by ended.id for update
  ));
  if p_states is null or 'dead' = any (p_states) then
    v_discarded := v_discarded + holdfast.forget_dead(array(
      select dead.id from holdfast.dead as dead where dead.id = any (p_ids) order by dead.id for update
    ));
  end if;
  return v_discarded;
end $$;

-- Applies one action to these jobs and returns how many it changed. p_states, if given, are the states that the caller asked
-- for: a job that has left them since it was found stays as it is. p_reason is for cancels, p_payload for replays.
create function holdfast.change(p_ids uuid[], p_states text[], p_action text, p_reason text, p_payload text)
returns integer language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  case p_action
    when 'replay' then return holdfast.replay_all(p_ids, p_states, p_payload);
    when 'discard' then return holdfast.discard(p_ids, p_states);
    when 'cancel' then return holdfast.cancel_all(p_ids, p_states, p_reason);
    else raise exception 'unknown action: %', coalesce(p_action, 'null');
  end case;
end $$;

-- Replays dead jobs. Locks them in order of id, and then takes their keys in the order in which enqueues take keys.
create function holdfast.replay_all(p_ids uuid[], p_states text[], p_payload text) returns integer language plpgsql as $$
declare
  v_id uuid;
  v_changed integer := 0;
begin
  if 'dead' <> all (p_states) then return 0; end if;
  perform from holdfast.dead as dead where dead.id = any (p_ids) order by dead.id for update;
  for v_id in
    select dead.id from holdfast.dead as dead where dead.id = any (p_ids)
    order by dead.unique_key collate "C" nulls first, dead.id
  loop
    if holdfast.replay(v_id, p_payload) then v_changed := v_changed + 1; end if;
  end loop;
  return v_changed;
end $$;

-- Cancels jobs: first those that wait, in the order in which enqueues lock jobs and their keys; then those that run, with
-- their leases locked in order of token.
create function holdfast.cancel_all(p_ids uuid[], p_states text[], p_reason text) returns integer language plpgsql as $$
declare
  v_id uuid;
  v_rest uuid[] := '{}';
  v_changed integer := 0;
begin
  for v_id in
    select asked from unnest(p_ids) as asked
    left join holdfast.ready as ready on ready.id = asked
    left join holdfast.scheduled as scheduled on scheduled.id = asked
    order by coalesce(ready.unique_key, scheduled.unique_key) collate "C" nulls first, asked
  loop
    if holdfast.cancel_waiting(v_id, p_reason, p_states) then v_changed := v_changed + 1;
    else v_rest := v_rest || v_id; end if;
  end loop;
  if v_rest = '{}' then return v_changed; end if;
  if p_states is null or 'running' = any (p_states) then
    perform from holdfast.lease as lease
    where lease.token = any (array(select token from holdfast.open_leases(v_rest)))
    order by lease.token for update;
  end if;
  foreach v_id in array v_rest loop
    if holdfast.cancel(v_id, p_reason, p_states) in ('cancelled', 'requested', 'heard') then
      v_changed := v_changed + 1;
    end if;
  end loop;
  return v_changed;
end $$;

-- Changes a waiting job. A null parameter leaves that part as it is. Returns edited, running, final or missing.
create function holdfast.edit(
  p_id uuid, p_payload text, p_priority smallint, p_head_start bigint, p_due_in bigint, p_due_at bigint
) returns text language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_now bigint;
  v_job holdfast.waiting;
  v_state text;
begin
  -- A job that moves during the search is searched for again.
  loop
    v_job := holdfast.take_waiting(p_id, null);
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

-- Pauses or resumes a queue. It waits for claims under way, so no claim takes from a paused queue once this has committed.
create function holdfast.set_paused(p_queue text, p_paused boolean) returns void language plpgsql as $$
begin
  perform pg_advisory_xact_lock('holdfast.queue'::regclass::oid::integer, hashtext(p_queue));
  insert into holdfast.queue as queue (name, paused) values (p_queue, p_paused)
  on conflict (name) do update set paused = excluded.paused;
  if p_paused then perform pg_notify(holdfast.channel(), 'paused ' || p_queue);
  else perform holdfast.notify_ready(p_queue, -1::smallint, 0); end if;
end $$;
