-- Makes a dead job ready again with all its attempts, and with another payload if one is given. Returns replayed, not_dead, or
-- key_held if another job holds its unique key.
create function holdfast.replay(p_id uuid, p_payload text) returns text language plpgsql as $$
declare
  v_job holdfast.dead;
  v_holder uuid;
begin
  select * into v_job from holdfast.dead as dead where dead.id = p_id for update;
  if not found then return 'not_dead'; end if;
  if v_job.unique_key is not null then
    v_holder := holdfast.take_key(v_job.unique_key, p_id, v_job.unique_hold);
    if v_holder <> p_id then return 'key_held'; end if;
  end if;
  delete from holdfast.dead as dead where dead.id = p_id;
  if not found then raise exception 'dead letter % is gone, although it is locked', p_id; end if;
  if p_payload is not null and v_job.payload is null then perform holdfast.delete_payloads(array[p_id]); end if;
  insert into holdfast.count_change (queue, dead) values (v_job.queue, -1);
  perform holdfast.put_waiting(row(p_id, v_job.queue, v_job.name, v_job.priority, v_job.head_start, holdfast.now_ms(),
    v_job.created_at, 0, 0, v_job.unique_hold, v_job.unique_key,
    coalesce(v_job.past, '{}') || jsonb_build_object('error', v_job.error), v_job.facts,
    coalesce(p_payload, v_job.payload))::holdfast.waiting);
  return 'replayed';
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
      -- Strays are not in history: they have their own rows in ended.
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

-- Applies one action to these jobs. p_states, if given, are the states that the caller asked for: a job that has left them since
-- it was found stays as it is. p_reason is for cancels, p_payload for replays. Returns the number of jobs with each outcome, see
-- holdfast.count_outcomes; of a discard only those that it deleted.
create function holdfast.change(p_ids uuid[], p_states text[], p_action text, p_reason text, p_payload text)
returns json language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  case p_action
    when 'replay' then return holdfast.replay_all(p_ids, p_states, p_payload);
    when 'discard' then return json_build_object('discarded', holdfast.discard(p_ids, p_states));
    when 'cancel' then return holdfast.cancel_all(p_ids, p_states, p_reason);
    else raise exception 'unknown action: %', coalesce(p_action, 'null');
  end case;
end $$;

-- The number of jobs with each outcome, as a JSON object. Jobs that are missing, or in a state that was not asked for, don't count.
create function holdfast.count_outcomes(p_outcomes text[]) returns json language sql immutable as $$
  select coalesce(json_object_agg(counted.outcome, counted.jobs), '{}')
  from (
    select outcome, count(*) as jobs from unnest(p_outcomes) as outcome
    where outcome not in ('missing', 'other') group by outcome
  ) as counted
$$;

-- Replays dead jobs. Locks them in order of id, and then takes their keys in the order in which enqueues take keys.
create function holdfast.replay_all(p_ids uuid[], p_states text[], p_payload text) returns json language plpgsql as $$
declare
  v_id uuid;
  v_outcomes text[] := '{}';
begin
  if 'dead' <> all (p_states) then return '{}'; end if;
  perform from holdfast.dead as dead where dead.id = any (p_ids) order by dead.id for update;
  for v_id in
    select dead.id from holdfast.dead as dead where dead.id = any (p_ids)
    order by dead.unique_key collate "C" nulls first, dead.id
  loop
    v_outcomes := v_outcomes || holdfast.replay(v_id, p_payload);
  end loop;
  return holdfast.count_outcomes(v_outcomes);
end $$;

-- These jobs, in the order in which enqueues lock waiting jobs and their keys. Subqueries, because the planner may merge a
-- join with the whole of ready.
create function holdfast.in_lock_order(p_ids uuid[]) returns setof uuid language sql stable as $$
  select asked from unnest(p_ids) as asked
  order by coalesce(
    (select ready.unique_key from holdfast.ready as ready where ready.id = asked),
    (select scheduled.unique_key from holdfast.scheduled as scheduled where scheduled.id = asked)
  ) collate "C" nulls first, asked
$$;

-- Cancels jobs: first those that wait, in the order in which enqueues lock jobs and their keys; then those that run, with
-- their leases locked in order of token.
create function holdfast.cancel_all(p_ids uuid[], p_states text[], p_reason text) returns json language plpgsql as $$
declare
  v_id uuid;
  v_rest uuid[] := '{}';
  v_outcomes text[] := '{}';
begin
  for v_id in select * from holdfast.in_lock_order(p_ids) loop
    if holdfast.cancel_waiting(v_id, p_reason, p_states) then v_outcomes := v_outcomes || 'cancelled'::text;
    else v_rest := v_rest || v_id; end if;
  end loop;
  if v_rest = '{}' then return holdfast.count_outcomes(v_outcomes); end if;
  if p_states is null or 'running' = any (p_states) then
    perform from holdfast.lease as lease
    where lease.token = any (array(select token from holdfast.open_leases(v_rest)))
    order by lease.token for update;
  end if;
  foreach v_id in array v_rest loop
    v_outcomes := v_outcomes || holdfast.cancel(v_id, p_reason, p_states);
  end loop;
  return holdfast.count_outcomes(v_outcomes);
end $$;

-- Edits jobs, with the arguments of holdfast.edit. Returns the number of jobs with each outcome, see holdfast.count_outcomes.
create function holdfast.edit_all(
  p_ids uuid[], p_states text[], p_payload text, p_priority smallint, p_head_start bigint, p_due_in bigint, p_due_at bigint
) returns json language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_id uuid;
  v_outcomes text[] := '{}';
begin
  for v_id in select * from holdfast.in_lock_order(p_ids) loop
    v_outcomes := v_outcomes
      || holdfast.edit(v_id, p_states, p_payload, p_priority, p_head_start, p_due_in, p_due_at);
  end loop;
  return holdfast.count_outcomes(v_outcomes);
end $$;

-- Changes a waiting job. A null parameter leaves that part as it is. p_states, if given, limits it to jobs that are in one of
-- these states now. Returns edited, running, final, missing, or other if its state is not one of p_states.
create function holdfast.edit(
  p_id uuid, p_states text[], p_payload text, p_priority smallint, p_head_start bigint, p_due_in bigint, p_due_at bigint
) returns text language plpgsql as $$
declare
  v_now bigint;
  v_job holdfast.waiting;
  v_state text;
begin
  -- A job that moves during the search is searched for again.
  loop
    v_job := holdfast.take_waiting(p_id, p_states);
    exit when v_job.id is not null;
    select one.state into v_state from holdfast.get_job(p_id) as one;
    if not found then return 'missing'; end if;
    if v_state <> all (p_states) then return 'other'; end if;
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

-- Pauses or resumes a queue. It waits for running claims, so no claim takes from a paused queue once this has
-- committed.
create function holdfast.set_paused(p_queue text, p_paused boolean) returns void language plpgsql as $$
begin
  perform pg_advisory_xact_lock('holdfast.queue'::regclass::oid::integer, hashtext(p_queue));
  insert into holdfast.queue as queue (name, paused) values (p_queue, p_paused)
  on conflict (name) do update set paused = excluded.paused;
  if p_paused then perform pg_notify(holdfast.channel(), 'paused ' || p_queue);
  else perform holdfast.notify_ready(p_queue, -1::smallint, 0); end if;
end $$;
