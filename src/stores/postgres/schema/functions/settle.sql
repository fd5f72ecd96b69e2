-- Writes the outcomes of positions of this worker's leases.
--
-- p_leases names each lease once, in order of token. p_masks has a bit for each position of a lease, up to the last one
-- to settle. The lists after that have an entry for each bit that is set, lease by lease; null for a whole list means
-- that no position has it, and p_kinds is null if all are completed, or all forgotten (p_forget).
--   kinds    completed, forget (completed or dead, and nothing is kept), retry, dead, snooze, release, cancelled
--   details  the result, the error as JSON, or the reason
--   records  see holdfast.with_record
-- Returns a text with an entry for each lease of this worker: its token, and after a colon the requested positions that
-- were settled before, if any.
create function holdfast.settle(
  p_worker uuid, p_leases bigint[], p_masks text[], p_kinds text[], p_delays bigint[], p_run_ms integer[],
  p_details text[], p_dropped boolean[], p_records text[], p_forget boolean
) returns text language plpgsql as $$
declare
  v_lease holdfast.lease;
  v_mask varbit;
  v_fresh varbit;
  -- Every requested position exists and is open.
  v_usual boolean;
  v_size integer;
  v_start integer := 0;
  v_answers text[] := '{}';
begin
  for v_at in 1 .. cardinality(p_leases) loop
    v_size := length(replace(p_masks[v_at], '0', ''));
    -- Waits for earlier settles of the same lease. Everything read afterwards, including the time, reflects them.
    select * into v_lease from holdfast.lease as lease
    where lease.token = p_leases[v_at] and lease.worker = p_worker for update;
    if found then
      v_mask := rpad(p_masks[v_at], length(v_lease.done), '0')::varbit;
      v_fresh := v_mask & ~ v_lease.done;
      v_usual := v_fresh = v_mask and length(p_masks[v_at]) <= length(v_mask);
      v_answers := v_answers
        || case when v_usual then v_lease.token::text else concat(v_lease.token, ':', v_lease.done) end;
      if position(B'1' in v_fresh) = 0 then
        null;
      elsif p_forget then
        perform holdfast.forget_positions(v_lease, v_fresh);
      elsif p_kinds is null and p_records is null and v_usual and v_lease.reported is null
        and (v_lease.strays is null or position(B'1' in v_lease.strays & v_fresh) = 0) then
        perform holdfast.complete_positions(v_lease, v_fresh, v_size, p_run_ms[v_start + 1 : v_start + v_size],
          p_details[v_start + 1 : v_start + v_size], p_dropped[v_start + 1 : v_start + v_size]);
      else
        perform holdfast.settle_each(v_lease, v_mask, v_fresh, v_start, p_kinds, p_delays, p_run_ms, p_details, p_dropped,
          p_records, null);
      end if;
    end if;
    v_start := v_start + v_size;
  end loop;
  return array_to_string(v_answers, ',');
end $$;

-- The fast path: one row of history for all positions.
create function holdfast.complete_positions(
  p_lease holdfast.lease, p_mask varbit, p_size integer, p_run_ms integer[], p_results text[], p_dropped boolean[]
) returns void language plpgsql as $$
begin
  -- Only the batch has the jobs: without it, history would refer to nothing.
  if not exists (
    select from holdfast.batch as batch where batch.token = p_lease.token and batch.claimed_at = p_lease.claimed_at
  ) then
    raise exception 'lease % has no batch', p_lease.token;
  end if;
  if p_lease.keyed then perform holdfast.free_keys_of(p_lease, p_mask); end if;
  insert into holdfast.history
    (finished_at, token, claimed_at, worker, size, has_large, queue, mask, run_ms, results, dropped)
  values (holdfast.now_ms(), p_lease.token, p_lease.claimed_at, p_lease.worker, p_size, p_lease.has_large, p_lease.queue,
    case when position(B'0' in p_mask) > 0 then p_mask end, p_run_ms,
    case when array_remove(p_results, null) <> '{}' then p_results end,
    case when true = any (p_dropped) then p_dropped end);
  insert into holdfast.count_change (queue, completed) values (p_lease.queue, p_size);
  perform holdfast.end_positions(p_lease, p_mask, true);
end $$;

-- The other fast path: deletes these jobs and keeps no history.
create function holdfast.forget_positions(p_lease holdfast.lease, p_mask varbit) returns void language plpgsql as $$
begin
  if p_lease.keyed then perform holdfast.free_keys_of(p_lease, p_mask); end if;
  if p_lease.has_large then
    perform holdfast.delete_payloads(array_agg(job.id))
    from holdfast.batch as batch cross join lateral unnest(batch.ids) with ordinality as job (id, place)
    where batch.token = p_lease.token and batch.claimed_at = p_lease.claimed_at
      and get_bit(p_mask, (job.place - 1)::integer) = 1;
  end if;
  perform holdfast.end_positions(p_lease, p_mask, false);
end $$;

-- Frees the unique keys of these positions.
create function holdfast.free_keys_of(p_lease holdfast.lease, p_mask varbit) returns void language plpgsql as $$
begin
  perform holdfast.free_keys(array_agg(unpacked.unique_key), array_agg(job.id))
  from holdfast.batch_jobs(p_lease.token, p_lease.claimed_at) as job
  cross join lateral holdfast.unpack_job(job.job) as unpacked
  where get_bit(p_mask, job.place) = 1 and unpacked.unique_key is not null;
end $$;
