-- Edits of jobs that wait, and replays with another payload.

-- A body with another payload, priority and head start; null leaves each of them as it is. A payload that is long stands
-- apart, as in src/stores/postgres/bodies.ts.
create function holdfast.rewritten(p_body json, p_payload text, p_priority smallint, p_head_start bigint) returns json
language plpgsql as $$
declare
  v_id constant uuid := p_body ->> 0;
  v_long constant boolean := octet_length(p_payload) > 2048;
begin
  if p_payload is not null then delete from holdfast.payload where id = v_id; end if;
  if v_long then insert into holdfast.payload (id, body) values (v_id, p_payload); end if;
  return (
    select json_agg(case
      when place = 3 and p_payload is not null then case when not v_long then to_json(p_payload) end
      when place = 4 and p_priority is not null then to_json(p_priority)
      when place = 5 and p_head_start is not null then to_json(p_head_start)
      else entry end order by place)
    from json_array_elements(p_body) with ordinality as body (entry, place)
  );
end $$;

-- Changes a job that waits: edited, running, final or missing. Null leaves what it stands for as it is.
create function holdfast.edit(
  p_id uuid, p_payload text, p_priority smallint, p_head_start bigint, p_due_in bigint, p_due_at bigint
) returns text language plpgsql as $$
declare
  v_now bigint;
  v_job record;
  v_state text;
begin
  -- A job that moves while it is looked for is looked for again. Who has it locked is waited for: it may be one that
  -- promotes it, or that only meets it as the holder of a key.
  loop
    with gone as (
      delete from holdfast.ready where id = p_id returning *
    ), gone_too as (
      delete from holdfast.scheduled where id = p_id returning *
    )
    select * into v_job from (select * from gone union all select * from gone_too) as either;
    exit when found;
    select state into v_state from holdfast.job_record where id = p_id;
    if not found then return 'missing'; end if;
    if v_state = 'running' then return 'running'; end if;
    if v_state not in ('ready', 'scheduled') then return 'final'; end if;
  end loop;
  v_now := holdfast.now_ms();
  perform holdfast.put_waiting(p_id, v_job.queue,
    case when p_due_at is not null then greatest(p_due_at, v_now) else coalesce(v_now + p_due_in, v_job.due_at) end,
    v_job.created_at, v_job.attempt, v_job.crashes, v_job.past,
    holdfast.rewritten(v_job.body::json, p_payload, p_priority, p_head_start));
  return 'edited';
end $$;

-- A dead job is ready again with all its attempts, and with another payload if one is given, if it can have its unique key.
create function holdfast.replay(p_id uuid, p_payload text) returns boolean language plpgsql as $$
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
    coalesce(past, '{}') || jsonb_build_object('error', v_job.error),
    case when p_payload is null then body::json else holdfast.rewritten(body::json, p_payload, null, null) end)
  from holdfast.unpacked(v_job.job, v_job.said);
  return true;
end $$;

-- Applies one action to jobs in order of id; answers how many it changed. p_reason is for cancels, p_payload for replays.
create function holdfast.change(p_ids uuid[], p_action text, p_reason text, p_payload text) returns integer
language plpgsql as $$
declare
  v_id uuid;
  v_changed integer := 0;
begin
  foreach v_id in array p_ids loop
    if (case p_action
      when 'replay' then holdfast.replay(v_id, p_payload)
      when 'discard' then holdfast.discard(v_id)
      when 'cancel' then holdfast.cancel(v_id, p_reason) in ('cancelled', 'requested')
    end) then
      v_changed := v_changed + 1;
    end if;
  end loop;
  return v_changed;
end $$;

-- For processes of the version before.
create or replace function holdfast.change(p_ids uuid[], p_action text, p_reason text) returns integer language sql as $$
  select holdfast.change(p_ids, p_action, p_reason, null)
$$;
create or replace function holdfast.replay(p_id uuid) returns boolean language sql as $$
  select holdfast.replay(p_id, null)
$$;
