-- Unique keys. Claims, enqueues and cancels lock the waiting job first, then its key. See claim.sql for the order of locks.

-- Takes the key for a job, or returns the job that holds it.
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
    -- If the key was freed between the two statements, take it after all.
    select held.job into v_holder from holdfast.unique_key as held where held.key = p_key;
    if found then return v_holder; end if;
  end loop;
end $$;

-- Frees the keys that these jobs hold until they are final.
create function holdfast.free_keys(p_keys text[], p_jobs uuid[]) returns void language plpgsql as $$
begin
  delete from holdfast.unique_key as held
  where held.key = any (p_keys) and held.job = any (p_jobs) and held.until is null;
end $$;

-- Removes a job that waits in one of these states (null: any), or returns null. Waits for a running claim, promotion or
-- edit.
create function holdfast.take_waiting(p_id uuid, p_states text[]) returns holdfast.waiting language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_from_ready constant boolean := p_states is null or 'ready' = any (p_states);
  v_from_scheduled constant boolean := p_states is null or 'scheduled' = any (p_states);
  v_job holdfast.waiting;
begin
  -- If another session moved or changed the job meanwhile, it has another row: read again. Each round waits for one
  -- session at most.
  loop
    delete from holdfast.ready as ready where ready.id = p_id and v_from_ready
    returning ready.id, ready.queue, ready.name, ready.priority, ready.due_at - ready.rank, ready.due_at, ready.created_at,
      ready.attempt, ready.crashes, ready.unique_hold, ready.unique_key, ready.past, ready.facts, ready.payload
    into v_job;
    if found then
      insert into holdfast.count_change (queue, ready) values (v_job.queue, -1);
      return v_job;
    end if;
    delete from holdfast.scheduled as scheduled where scheduled.id = p_id and v_from_scheduled
    returning scheduled.id, scheduled.queue, scheduled.name, scheduled.priority, scheduled.head_start, scheduled.due_at,
      scheduled.created_at, scheduled.attempt, scheduled.crashes, scheduled.unique_hold, scheduled.unique_key,
      scheduled.past, scheduled.facts, scheduled.payload
    into v_job;
    if found then
      insert into holdfast.count_change (queue, scheduled) values (v_job.queue, -1);
      return v_job;
    end if;
    exit when not exists (select from holdfast.ready as ready where ready.id = p_id and v_from_ready)
      and not exists (select from holdfast.scheduled as scheduled where scheduled.id = p_id and v_from_scheduled);
  end loop;
  return null;
end $$;

-- Puts a waiting job back, as it is or changed.
create function holdfast.put_waiting(p_job holdfast.waiting) returns void language plpgsql as $$
begin
  perform holdfast.admit(holdfast.now_ms(), array[p_job.id], array[p_job.queue], array[p_job.name], array[p_job.priority],
    array[p_job.head_start], array[p_job.due_at], array[p_job.created_at], array[p_job.attempt], array[p_job.crashes],
    array[p_job.unique_hold], array[p_job.unique_key], array[p_job.past], array[p_job.facts], array[p_job.payload]);
end $$;

-- Decides about a job whose key another waiting job may hold: replaced, rescheduled or duplicate. Returns null if the
-- holder has lost the key meanwhile, because it was claimed or the hold expired: then the key may be free.
create function holdfast.meet_holder(p_holder uuid, p_on_conflict text, p_job holdfast.waiting) returns text
language plpgsql as $$
declare
  v_job holdfast.waiting;
begin
  v_job := holdfast.take_waiting(p_holder, null);
  if v_job.id is null then
    return case when exists (
      select from holdfast.unique_key as held where held.key = p_job.unique_key and held.job = p_holder
    ) then 'duplicate' end;
  end if;
  perform from holdfast.unique_key as held where held.key = p_job.unique_key and held.job = p_holder for update;
  if not found then
    perform holdfast.put_waiting(v_job);
    return null;
  end if;
  if p_on_conflict = 'reschedule' then
    v_job.due_at := p_job.due_at;
    perform holdfast.put_waiting(v_job);
    return 'rescheduled';
  end if;
  -- The holder keeps its id and its time of creation. Everything else comes from the new job: it starts with all its
  -- attempts.
  update holdfast.unique_key as held
  set until = case when p_job.unique_hold > 0 then holdfast.now_ms() + p_job.unique_hold end
  where held.key = p_job.unique_key;
  if not found then raise exception 'a unique key is gone, although it is locked'; end if;
  if v_job.payload is null then perform holdfast.delete_payloads(array[p_holder]); end if;
  p_job.facts := holdfast.facts_with(p_job.facts, p_holder, null, null);
  p_job.id := p_holder;
  p_job.created_at := v_job.created_at;
  perform holdfast.put_waiting(p_job);
  return 'replaced';
end $$;
