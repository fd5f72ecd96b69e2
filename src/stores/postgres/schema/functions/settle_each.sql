-- The past of a job with one more record of an attempt. p_record is [number of records to keep, record].
create function holdfast.with_record(p_past jsonb, p_record text) returns jsonb language plpgsql immutable as $$
declare
  v_record constant jsonb := p_record;
  v_attempts jsonb := coalesce(p_past -> 'attempts', '[]') || (v_record -> 1);
begin
  while jsonb_array_length(v_attempts) > (v_record ->> 0)::integer loop
    v_attempts := v_attempts - 0;
  end loop;
  return coalesce(p_past, '{}') || jsonb_build_object('attempts', v_attempts);
end $$;

-- The general settle of one lease, for positions that end in different ways. The lists have an entry for each position in
-- p_mask, beginning after p_start entries; p_kinds is null if all are completed. p_fresh has the positions of p_mask that
-- are still open. p_crashes, if given, is the number of workers that each job has lost so far.
--
-- Kinds are told apart in few places: what the job becomes, when it is due again, and whether its attempt counts. If one of
-- them forgets a kind, it yields null or writes no row, and the settle is refused.
create function holdfast.settle_each(
  p_lease holdfast.lease, p_mask varbit, p_fresh varbit, p_start integer, p_kinds text[], p_delays bigint[],
  p_run_ms integer[], p_details text[], p_dropped boolean[], p_records text[], p_crashes integer[]
) returns void language plpgsql as $$
declare
  v_now constant bigint := holdfast.now_ms();
  v_size constant integer := length(p_lease.done);
  v_all record;
begin
  if cardinality(p_kinds) < p_start + holdfast.bits(p_mask) then
    raise exception 'lease %: a position has no kind of settlement', p_lease.token;
  end if;

  with asked as (
    select place, p_start + row_number() over (order by place) as number
    from generate_series(0, v_size - 1) as place where get_bit(p_mask, place) = 1
  ), fresh as materialized (
    select asked.place, job.id, job.payload, p_delays[asked.number] as delay, p_run_ms[asked.number] as run_ms,
      p_details[asked.number] as detail, coalesce(p_dropped[asked.number], false) as dropped, unpacked.due_at,
      unpacked.facts, unpacked.attempt, coalesce(p_crashes[asked.number], unpacked.crashes) as crashes,
      unpacked.created_at, unpacked.unique_key, unpacked.unique_hold, unpacked.name, unpacked.priority,
      unpacked.head_start,
      coalesce(p_lease.reported ? asked.place::text, false) or p_records[asked.number] is not null as has_reported,
      coalesce(get_bit(p_lease.strays, asked.place) = 1, false) as stray,
      holdfast.past_after(unpacked.past, p_lease.reported -> asked.place::text, p_records[asked.number]) as past,
      wanted.kind, wanted.kind = 'completed' as completed,
      case
        -- A requested cancel is not lost if the job would come back.
        when way.comes_back then case when p_lease.cancels ? asked.place::text then 'cancelled' else 'waiting' end
        when wanted.kind in ('completed', 'dead', 'cancelled') then wanted.kind
        when wanted.kind = 'forget' then 'nothing'
      end as becomes,
      case when way.comes_back then p_lease.cancels -> asked.place::text ->> 'reason' else p_details[asked.number] end as reason
    from asked
    join holdfast.batch_jobs(p_lease.token, p_lease.claimed_at) as job on job.place = asked.place
    cross join lateral holdfast.unpack_job(job.job) as unpacked
    cross join lateral (select case when p_kinds is null then 'completed' else p_kinds[asked.number] end as kind) as wanted
    cross join lateral (select wanted.kind in ('retry', 'snooze', 'release') as comes_back) as way
    where get_bit(p_fresh, asked.place) = 1
  ), packed as materialized (
    select fresh.* from fresh where fresh.completed and not fresh.stray and not fresh.has_reported
  ), history as (
    insert into holdfast.history
      (finished_at, token, claimed_at, worker, size, has_large, queue, mask, run_ms, results, dropped)
    select v_now, p_lease.token, p_lease.claimed_at, p_lease.worker, count(*), p_lease.has_large, p_lease.queue,
      holdfast.mask_of(v_size, array_agg(packed.place)), array_agg(packed.run_ms order by packed.place),
      array_agg(packed.detail order by packed.place), array_agg(packed.dropped order by packed.place)
    from packed having count(*) > 0
  ), ended as (
    insert into holdfast.ended as ended (id, finished_at, due_at, created_at, attempt, crashes, run_ms, token, worker,
      completed, result_dropped, queue, name, unique_key, past, facts, payload, result, reason)
    select fresh.id, v_now, fresh.due_at, fresh.created_at, fresh.attempt, fresh.crashes, fresh.run_ms, p_lease.token,
      p_lease.worker, fresh.completed, fresh.dropped, p_lease.queue, fresh.name, fresh.unique_key, fresh.past,
      fresh.facts, fresh.payload, case when fresh.completed then fresh.detail end,
      case when not fresh.completed then fresh.reason end
    from fresh
    where fresh.becomes = 'cancelled' or (fresh.completed and (fresh.stray or fresh.has_reported))
    returning ended.completed
  ), dead as (
    insert into holdfast.dead (id, finished_at, due_at, created_at, attempt, crashes, priority, head_start, queue, name,
      fingerprint, unique_hold, unique_key, error, past, facts, payload)
    select fresh.id, v_now, fresh.due_at, fresh.created_at, fresh.attempt, fresh.crashes, fresh.priority,
      fresh.head_start, p_lease.queue, fresh.name, fresh.detail::jsonb ->> 'fingerprint', fresh.unique_hold,
      fresh.unique_key, fresh.detail::jsonb, fresh.past, fresh.facts, fresh.payload
    from fresh where fresh.becomes = 'dead'
    returning 1
  ), final as (
    select holdfast.free_keys(array_agg(fresh.unique_key), array_agg(fresh.id)) from fresh
    where fresh.unique_key is not null and fresh.becomes <> 'waiting' having count(*) > 0
  ), forgotten as (
    select holdfast.delete_payloads(array_agg(fresh.id)) from fresh
    where fresh.payload is null and fresh.becomes = 'nothing' having count(*) > 0
  )
  -- The jobs that come back: a release keeps its place in the queue, and all but a retry hand their attempt back.
  select count(*) as found, min(coalesce(fresh.kind, 'null')) filter (where fresh.becomes is null) as unknown,
    (select count(*) from packed) as packed, (select count(*) from ended where ended.completed) as completed,
    (select count(*) from ended where not ended.completed) as cancelled, (select count(*) from dead) as dead,
    count(*) filter (where fresh.becomes = 'nothing') as forgotten,
    (select count(*) from final) + (select count(*) from forgotten) as effects,
    array_agg(fresh.id) filter (where fresh.comes_back) as ids,
    array_agg(fresh.name) filter (where fresh.comes_back) as names,
    array_agg(fresh.priority) filter (where fresh.comes_back) as priorities,
    array_agg(fresh.head_start) filter (where fresh.comes_back) as head_starts,
    array_agg(case when fresh.kind = 'release' then fresh.due_at
      when fresh.kind in ('retry', 'snooze') then v_now + fresh.delay end)
      filter (where fresh.comes_back) as dues,
    array_agg(fresh.created_at) filter (where fresh.comes_back) as created,
    array_agg(case when fresh.kind = 'retry' then fresh.attempt
      when fresh.kind in ('snooze', 'release') then fresh.attempt - 1 end)
      filter (where fresh.comes_back) as attempts,
    array_agg(fresh.crashes) filter (where fresh.comes_back) as crashes,
    array_agg(fresh.unique_hold) filter (where fresh.comes_back) as holds,
    array_agg(fresh.unique_key) filter (where fresh.comes_back) as keys,
    array_agg(case when fresh.detail is null then fresh.past
      else coalesce(fresh.past, '{}') || jsonb_build_object('error', fresh.detail::jsonb) end)
      filter (where fresh.comes_back) as pasts,
    array_agg(fresh.facts) filter (where fresh.comes_back) as facts,
    array_agg(fresh.payload) filter (where fresh.comes_back) as payloads
  into v_all
  from (select fresh.*, fresh.becomes = 'waiting' as comes_back from fresh) as fresh;

  if v_all.found <> holdfast.bits(p_fresh) then
    raise exception 'lease %: its batch has % of % jobs', p_lease.token, v_all.found, holdfast.bits(p_fresh);
  end if;
  if v_all.unknown is not null then raise exception 'unknown kind of settlement: %', v_all.unknown; end if;
  v_all.completed := v_all.completed + v_all.packed;
  if v_all.completed + v_all.dead + v_all.cancelled + v_all.forgotten + coalesce(cardinality(v_all.ids), 0) <> v_all.found then
    raise exception 'lease %: a kind of settlement leads to no state', p_lease.token;
  end if;
  if v_all.ids is not null then
    if array_position(v_all.dues, null) is not null or array_position(v_all.attempts, null) is not null then
      raise exception 'lease %: a kind of settlement that comes back has no due time or no attempt', p_lease.token;
    end if;
    perform holdfast.admit(v_now, v_all.ids, array[p_lease.queue], v_all.names, v_all.priorities, v_all.head_starts,
      v_all.dues, v_all.created, v_all.attempts, v_all.crashes, v_all.holds, v_all.keys, v_all.pasts, v_all.facts,
      v_all.payloads);
  end if;
  if v_all.completed + v_all.dead + v_all.cancelled > 0 then
    insert into holdfast.count_change (queue, completed, dead, cancelled)
    values (p_lease.queue, v_all.completed, v_all.dead, v_all.cancelled);
  end if;
  perform holdfast.end_positions(p_lease, p_fresh, v_all.packed > 0);
end $$;

-- The past of a job that is being settled. The handler's report replaces what an earlier attempt reported.
create function holdfast.past_after(p_past jsonb, p_reported jsonb, p_record text) returns jsonb language sql immutable as $$
  select case
    when p_reported is null and p_record is null then p_past
    when p_record is null then coalesce(p_past, '{}') || p_reported
    else holdfast.with_record(coalesce(p_past, '{}') || coalesce(p_reported, '{}'), p_record) end
$$;
