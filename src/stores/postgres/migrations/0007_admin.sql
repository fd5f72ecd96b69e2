-- Administration: cancel, replay, discard, pause.

-- A final place for a waiting job that is cancelled.
create function holdfast.bury_cancelled(p_id uuid, p_reason text) returns boolean language plpgsql as $$
declare
  v_job record;
begin
  with gone as (
    delete from holdfast.ready where id = p_id returning *
  ), gone_too as (
    delete from holdfast.scheduled where id = p_id returning *
  )
  select * into v_job from (select * from gone union all select * from gone_too) as either;
  if not found then return false; end if;
  insert into holdfast.history (id, finished_at, run_ms, cancelled, queue, job, reason)
  values (p_id, holdfast.now_ms(), 0, true, v_job.queue,
    json_build_array(v_job.due_at, v_job.body::json, v_job.attempt, v_job.crashes, v_job.created_at, v_job.past)::text,
    p_reason);
  delete from holdfast.unique_key where key = v_job.unique_key and job = p_id and until is null;
  return true;
end $$;

-- Cancels a job wherever it is: cancelled, requested (its worker is told; the first reason stays), final or missing. A job
-- that moves while it is looked for is looked for again.
create function holdfast.cancel(p_id uuid, p_reason text) returns text language plpgsql as $$
declare
  v_lease record;
  v_place integer;
begin
  for v_try in 1 .. 3 loop
    if holdfast.bury_cancelled(p_id, p_reason) then return 'cancelled'; end if;
    select token, worker, done, cancels, array_position(ids, p_id) - 1 as place into v_lease
    from holdfast.lease where p_id = any (ids) order by token desc limit 1 for update;
    if found and get_bit(v_lease.done, v_lease.place) = 0 then
      if not coalesce(v_lease.cancels ? v_lease.place::text, false) then
        update holdfast.lease
        set cancels = coalesce(cancels, '{}')
          || jsonb_build_object(v_lease.place::text, jsonb_build_object('reason', p_reason))
        where token = v_lease.token;
      end if;
      perform pg_notify(holdfast.channel(), 'cancel ' || v_lease.worker);
      return 'requested';
    end if;
    if exists (select from holdfast.dead where id = p_id) or exists (select from holdfast.history where id = p_id) then
      return 'final';
    end if;
  end loop;
  return 'missing';
end $$;

-- A dead job is ready again with all its attempts, if it can have its unique key.
create function holdfast.replay(p_id uuid) returns boolean language plpgsql as $$
declare
  v_now constant bigint := holdfast.now_ms();
  v_job record;
  v_holder uuid;
begin
  select * into v_job from holdfast.dead where id = p_id for update;
  if not found then return false; end if;
  if v_job.job -> 1 ->> 7 is not null then
    v_holder := holdfast.take_key(v_job.job -> 1 ->> 7, p_id, (v_job.job -> 1 ->> 8)::bigint);
    if v_holder <> p_id then return false; end if;
  end if;
  delete from holdfast.dead where id = p_id;
  perform holdfast.put_waiting(p_id, v_job.queue, v_now, created_at, 0, 0,
    coalesce(past, '{}') || jsonb_build_object('error', v_job.error), body::json)
  from holdfast.unpacked(v_job.job, v_job.said);
  return true;
end $$;

-- Forgets a final job.
create function holdfast.discard(p_id uuid) returns boolean language plpgsql as $$
declare
  v_queue text;
begin
  with gone as (
    delete from holdfast.dead where id = p_id returning queue
  ), gone_too as (
    delete from holdfast.history where id = p_id returning queue
  )
  select queue into v_queue from (select queue from gone union all select queue from gone_too) as either;
  if not found then return false; end if;
  delete from holdfast.payload where id = p_id;
  insert into holdfast.queue (name) values (v_queue) on conflict do nothing;
  return true;
end $$;

-- Applies one action to jobs in order of id; answers how many it changed.
create function holdfast.change(p_ids uuid[], p_action text, p_reason text) returns integer language plpgsql as $$
declare
  v_id uuid;
  v_changed integer := 0;
begin
  foreach v_id in array p_ids loop
    if (case p_action
      when 'replay' then holdfast.replay(v_id)
      when 'discard' then holdfast.discard(v_id)
      when 'cancel' then holdfast.cancel(v_id, p_reason) in ('cancelled', 'requested')
    end) then
      v_changed := v_changed + 1;
    end if;
  end loop;
  return v_changed;
end $$;

-- After this has committed no claim takes from a paused queue: it waits for those under way.
create function holdfast.set_paused(p_queue text, p_paused boolean) returns void language plpgsql as $$
begin
  perform pg_advisory_xact_lock('holdfast.queue'::regclass::oid::integer, hashtext(p_queue));
  insert into holdfast.queue (name, paused) values (p_queue, p_paused)
  on conflict (name) do update set paused = excluded.paused;
  if not p_paused then perform holdfast.tell_ready(p_queue, -1::smallint, 0); end if;
end $$;

-- Every job in one place, as the program reads it. One query of it is one snapshot: a job that moves meanwhile is neither
-- missed nor shown twice. job as in a lease.
create view holdfast.job_record as
  select id, 'ready' as state, queue, json_build_array(due_at, body::json, attempt, crashes, created_at, past) as job,
    null::jsonb as said, null::bigint as token, null::uuid as worker, null::bigint as claimed_at,
    null::boolean as cancel_requested, null::bigint as finished_at, null::bigint as run_ms, null::text as result,
    null::boolean as result_dropped, null::text as reason, null::jsonb as error
  from holdfast.ready
  union all
  select id, 'scheduled', queue, json_build_array(due_at, body::json, attempt, crashes, created_at, past),
    null, null, null, null, null, null, null, null, null, null, null
  from holdfast.scheduled
  union all
  select job.id, 'running', lease.queue, lease.jobs[job.place]::json,
    lease.said -> (job.place - 1)::text, lease.token, lease.worker, lease.claimed_at,
    coalesce(lease.cancels ? (job.place - 1)::text, false), null, null, null, null, null, null
  from holdfast.lease as lease
  cross join lateral unnest(lease.ids) with ordinality as job (id, place)
  where get_bit(lease.done, (job.place - 1)::integer) = 0
  union all
  select id, 'dead', queue, job, said, null, null, null, null, finished_at, null, null, null, null, error
  from holdfast.dead
  union all
  select id, case when cancelled then 'cancelled' else 'completed' end, queue, job::json, said, token, null, null, null,
    finished_at, run_ms, result, result_dropped, reason, null
  from holdfast.history;

-- One row a job, for people and plain SQL. Read only.
create view holdfast.job_queue as
  select job.id, job.job -> 1 ->> 1 as job_type,
    coalesce(job.job -> 1 ->> 2, (select long.body from holdfast.payload as long where long.id = job.id))::json as payload,
    job.state as status, (job.job -> 1 ->> 3)::smallint as priority, attempt as attempts, (job.job -> 1 ->> 5)::integer as max_attempts,
    job.queue, to_timestamp(due_at / 1000.0) as scheduled_for,
    to_timestamp(coalesce(job.claimed_at, job.finished_at - job.run_ms) / 1000.0) as started_at,
    to_timestamp(job.finished_at / 1000.0) as completed_at,
    coalesce(job.error, past -> 'error') ->> 'message' as error_message,
    to_timestamp(created_at / 1000.0) as created_at,
    to_timestamp(coalesce(job.finished_at, job.claimed_at, created_at) / 1000.0) as updated_at
  from holdfast.job_record as job cross join lateral holdfast.unpacked(job.job, job.said);
