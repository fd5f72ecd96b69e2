-- Enqueues with unique keys: key by key in sorted order, so that two flushes never wait for each other in a ring.

-- Puts a waiting job where its due time says.
create function holdfast.put_waiting(
  p_id uuid, p_queue text, p_due bigint, p_created bigint, p_attempt integer, p_crashes integer, p_past jsonb, p_body json
) returns void language plpgsql as $$
declare
  v_now constant bigint := holdfast.now_ms();
  v_rank constant bigint := p_due - (p_body ->> 4)::bigint;
  v_lane constant smallint := case when p_crashes > 0 then 10 else (p_body ->> 3)::smallint end;
begin
  if p_due <= v_now then
    insert into holdfast.ready
      (id, rank, due_at, created_at, attempt, crashes, lane, long, queue, unique_key, past, body)
    values (p_id, v_rank, p_due, p_created, p_attempt, p_crashes, v_lane, p_body ->> 2 is null,
      p_queue, p_body ->> 7, p_past, p_body::text);
    perform holdfast.tell_ready(p_queue, v_lane, v_rank);
  else
    insert into holdfast.scheduled
      (id, rank, due_at, created_at, attempt, crashes, lane, long, queue, unique_key, past, body)
    values (p_id, v_rank, p_due, p_created, p_attempt, p_crashes, v_lane, p_body ->> 2 is null,
      p_queue, p_body ->> 7, p_past, p_body::text);
    perform holdfast.tell_due(p_due - v_now);
  end if;
end $$;

-- Takes a waiting job out, unless somebody else has it in hand: that one counts as running.
create function holdfast.take_waiting(p_id uuid)
returns table (queue text, created_at bigint, attempt integer, crashes integer, past jsonb, body text) language sql as $$
  with ready as (
    delete from holdfast.ready where id = (select id from holdfast.ready where id = p_id for update skip locked)
    returning *
  ), scheduled as (
    delete from holdfast.scheduled where id = (select id from holdfast.scheduled where id = p_id for update skip locked)
    returning *
  )
  select queue, created_at, attempt, crashes, past, body from ready
  union all
  select queue, created_at, attempt, crashes, past, body from scheduled
$$;

-- Takes the key for a job, or tells who holds it. hold as in a body.
create function holdfast.take_key(p_key text, p_job uuid, p_hold bigint) returns uuid language plpgsql as $$
declare
  v_now constant bigint := holdfast.now_ms();
  v_holder uuid;
begin
  loop
    insert into holdfast.unique_key as held (key, job, until)
    values (p_key, p_job, case when p_hold > 0 then v_now + p_hold end)
    on conflict (key) do update set job = excluded.job, until = excluded.until where held.until <= v_now;
    if found then return null; end if;
    -- Freed between the two: then it can be had.
    select job into v_holder from holdfast.unique_key where key = p_key for update;
    if found then return v_holder; end if;
  end loop;
end $$;

-- One job that met the holder of its key. Answers what became of it.
create function holdfast.meet_holder(
  p_holder uuid, p_on_conflict text, p_key text, p_queue text, p_due bigint, p_body json, p_payload text
) returns text language plpgsql as $$
declare
  v_hold constant bigint := (p_body ->> 8)::bigint;
  v_now constant bigint := holdfast.now_ms();
  v_job record;
begin
  if p_on_conflict = 'ignore' then
    -- Its claim would free the key, and so wait for the end of this transaction: locked as well, it is passed over.
    perform from holdfast.ready as waiting where waiting.id = p_holder for key share skip locked;
    perform from holdfast.scheduled as waiting where waiting.id = p_holder for key share skip locked;
    return 'duplicate';
  end if;
  select * into v_job from holdfast.take_waiting(p_holder);
  if v_job.body is null then return 'duplicate'; end if;
  if p_on_conflict = 'reschedule' then
    perform holdfast.put_waiting(p_holder, v_job.queue, p_due, v_job.created_at, v_job.attempt, v_job.crashes, v_job.past,
      v_job.body::json);
    return 'rescheduled';
  end if;
  -- The holder keeps its id and what it went through; all else is the new job's, its queue too.
  update holdfast.unique_key set until = case when v_hold > 0 then v_now + v_hold end where key = p_key;
  perform holdfast.put_waiting(p_holder, p_queue, p_due, v_job.created_at, v_job.attempt, v_job.crashes, v_job.past,
    ('["' || p_holder || substr(p_body::text, 39))::json);
  delete from holdfast.payload where id = p_holder;
  if p_payload is not null then insert into holdfast.payload (id, body) values (p_holder, p_payload); end if;
  return 'replaced';
end $$;

-- A flush with unique keys in it. Each job: {id, queue, due_in, due_at, key, on_conflict, body, payload where it is long}.
-- Answers null where the flush is new and all were inserted, else [[id, outcome], ...] in order ([] for "all inserted").
create function holdfast.enqueue_unique(p_flush uuid, p_jobs json) returns json language plpgsql
set plan_cache_mode = force_generic_plan as $$
declare
  v_now constant bigint := holdfast.now_ms();
  v_job record;
  v_holder uuid;
  v_outcome text;
  v_ids uuid[];
  v_outcomes text[];
  v_answers json;
begin
  insert into holdfast.intake (id, at) values (p_flush, v_now) on conflict (id) do nothing;
  if not found then
    select answers into v_answers from holdfast.intake where id = p_flush;
    return coalesce(v_answers, '[]');
  end if;
  for v_job in
    select (job ->> 'id')::uuid as id, job ->> 'queue' as queue, job ->> 'key' as key, job -> 'body' as body,
      job ->> 'on_conflict' as on_conflict, job ->> 'payload' as payload, place,
      greatest(coalesce((job ->> 'due_at')::bigint, v_now + (job ->> 'due_in')::bigint, v_now), v_now) as due
    from json_array_elements(p_jobs) with ordinality as flush (job, place)
    order by job ->> 'key' collate "C", place
  loop
    v_holder := null;
    v_outcome := null;
    if v_job.key is not null then
      -- A holder that is to be left alone is looked at without a lock on the key, for which its settle, and with that all
      -- that its worker does, would have to wait until the caller's transaction ends. Not where its claim frees the key:
      -- then this transaction must come before the claim. Nor where a look may be out of date.
      if current_setting('transaction_isolation') = 'read committed' then
        select held.job, 'duplicate' into v_holder, v_outcome from holdfast.unique_key as held
        where held.key = v_job.key and (held.until is null or held.until > v_now)
          and not exists (
            select from holdfast.ready as waiting
            where waiting.id = held.job and (v_job.on_conflict <> 'ignore' or waiting.body::json ->> 8 = '-1')
          ) and not exists (
            select from holdfast.scheduled as waiting
            where waiting.id = held.job and (v_job.on_conflict <> 'ignore' or waiting.body::json ->> 8 = '-1')
          );
      end if;
      if v_holder is null then
        v_holder := holdfast.take_key(v_job.key, v_job.id, (v_job.body ->> 8)::bigint);
      end if;
    end if;
    if v_holder is null then
      perform holdfast.put_waiting(v_job.id, v_job.queue, v_job.due, v_now, 0, 0, null, v_job.body);
      if v_job.payload is not null then
        insert into holdfast.payload (id, body) values (v_job.id, v_job.payload);
      end if;
      v_outcome := 'inserted';
    elsif v_outcome is null then
      v_outcome := holdfast.meet_holder(v_holder, v_job.on_conflict, v_job.key, v_job.queue, v_job.due, v_job.body,
        v_job.payload);
    end if;
    v_ids[v_job.place] := coalesce(v_holder, v_job.id);
    v_outcomes[v_job.place] := v_outcome;
  end loop;
  if v_outcomes is null or 'inserted' = all (v_outcomes) then return null; end if;
  select json_agg(json_build_array(id, outcome) order by place) into v_answers
  from unnest(v_ids, v_outcomes) with ordinality as answered (id, outcome, place);
  update holdfast.intake set answers = v_answers where id = p_flush;
  return v_answers;
end $$;
