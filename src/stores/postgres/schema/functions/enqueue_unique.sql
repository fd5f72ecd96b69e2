-- Enqueues jobs some of which have unique keys, in the order of their keys, so that two flushes cannot deadlock. Each
-- job: {id, queue, name, priority, head_start, due_in, due_at, key, hold, on_conflict, facts, payload}.
-- Returns null if the flush is new and all were inserted, otherwise [[id, outcome], ...] in order ([] for "all inserted").
create function holdfast.enqueue_unique(p_flush uuid, p_jobs json) returns json language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_now constant bigint := holdfast.now_ms();
  v_one record;
  v_job holdfast.waiting;
  v_holder uuid;
  v_outcome text;
  v_ids uuid[];
  v_outcomes text[];
  v_answers json;
begin
  insert into holdfast.intake as intake (id, at) values (p_flush, v_now) on conflict (id) do nothing;
  if not found then
    return (select coalesce(intake.answers, '[]') from holdfast.intake as intake where intake.id = p_flush);
  end if;
  for v_one in
    select flush.job, flush.place from json_array_elements(p_jobs) with ordinality as flush (job, place)
    order by flush.job ->> 'key' collate "C", flush.place
  loop
    v_job.id := v_one.job ->> 'id';
    v_job.queue := v_one.job ->> 'queue';
    v_job.name := v_one.job ->> 'name';
    v_job.priority := v_one.job ->> 'priority';
    v_job.head_start := v_one.job ->> 'head_start';
    v_job.due_at := greatest(coalesce((v_one.job ->> 'due_at')::bigint, v_now + (v_one.job ->> 'due_in')::bigint, v_now), v_now);
    v_job.created_at := v_now;
    v_job.attempt := 0;
    v_job.crashes := 0;
    v_job.unique_key := v_one.job ->> 'key';
    v_job.unique_hold := v_one.job ->> 'hold';
    v_job.facts := v_one.job -> 'facts';
    v_job.payload := v_one.job ->> 'payload';
    v_holder := null;
    v_outcome := null;
    while v_outcome is null loop
      select met.holder, met.outcome into v_holder, v_outcome
      from holdfast.look_for_holder(v_job, v_one.job ->> 'on_conflict') as met;
      if v_holder is null then
        v_outcome := 'inserted';
        perform holdfast.put_waiting(v_job);
      elsif v_outcome is null then
        v_outcome := holdfast.meet_holder(v_holder, v_one.job ->> 'on_conflict', v_job);
      end if;
    end loop;
    v_ids[v_one.place] := coalesce(v_holder, v_job.id);
    v_outcomes[v_one.place] := v_outcome;
  end loop;
  if v_outcomes is null or 'inserted' = all (v_outcomes) then return null; end if;
  select json_agg(json_build_array(answered.id, answered.outcome) order by answered.place) into v_answers
  from unnest(v_ids, v_outcomes) with ordinality as answered (id, outcome, place);
  update holdfast.intake as intake set answers = v_answers where intake.id = p_flush;
  if not found then raise exception 'flush % is gone from intake', p_flush; end if;
  return v_answers;
end $$;

-- Returns the job that holds the key of a job that is about to be enqueued. If there is none, takes the key, and holder is
-- null. outcome is 'duplicate' if on_conflict is ignore, which leaves the holder as it is.
--
-- Ignore does not lock the holder's key, because the holder's settle, and its worker with it, would have to wait until
-- the caller's transaction ends. If the claim of the holder frees the key, this locks the waiting job instead: then the
-- claim either comes after the caller's transaction, or came first and has freed the key. In isolation levels above
-- read committed a read may be out of date, so there the key is locked first.
create function holdfast.look_for_holder(p_job holdfast.waiting, p_on_conflict text, out holder uuid, out outcome text)
language plpgsql as $$
declare
  v_now constant bigint := holdfast.now_ms();
  v_hold bigint;
begin
  if p_job.unique_key is null then return; end if;
  loop
    holder := null;
    if current_setting('transaction_isolation') = 'read committed' then
      select held.job into holder from holdfast.unique_key as held
      where held.key = p_job.unique_key and (held.until is null or held.until > v_now);
    end if;
    if holder is null then
      holder := holdfast.take_key(p_job.unique_key, p_job.id, p_job.unique_hold);
      if holder is null then return; end if;
    end if;
    if p_on_conflict <> 'ignore' then return; end if;
    select waiting.unique_hold into v_hold
    from (
      select ready.unique_hold from holdfast.ready as ready where ready.id = holder
      union all select scheduled.unique_hold from holdfast.scheduled as scheduled where scheduled.id = holder
    ) as waiting;
    if not found then
      perform from holdfast.unique_key as held where held.key = p_job.unique_key and held.job = holder;
    elsif v_hold = -1 then
      perform from holdfast.ready as waiting where waiting.id = holder for key share;
      if not found then perform from holdfast.scheduled as waiting where waiting.id = holder for key share; end if;
    end if;
    if found then
      outcome := 'duplicate';
      return;
    end if;
    -- The holder was claimed or moved meanwhile: read again.
  end loop;
end $$;
