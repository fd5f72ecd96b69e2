-- Renews a worker's registration, releases the leases that it does not know (p_undelivered), and returns all leases in
-- its name, the requested cancels that it has not reported as heard ([token, position, reason]), and the paused queues.
-- alive is false if the worker was rescued. p_heard lists the cancels that took effect: [[token, position], ...].
-- p_at_once: see the table worker; ignored if a heartbeat with a number greater than p_nth came first.
create function holdfast.heartbeat(p_worker uuid, p_undelivered bigint[], p_heard json, p_at_once integer, p_nth integer)
returns table (alive boolean, tokens json, cancels json, paused json) language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  update holdfast.worker as worker
  set expires_at = holdfast.now_ms() + worker.lease_ms, nth = greatest(worker.nth, p_nth),
    at_once = case when p_nth < worker.nth then worker.at_once else coalesce(p_at_once, worker.at_once) end
  where worker.id = p_worker;
  if not found then
    return query select false, null::json, null::json, null::json;
    return;
  end if;
  if p_heard is not null then perform holdfast.note_heard(p_worker, p_heard); end if;
  if p_undelivered is not null then perform holdfast.release_leases(p_worker, p_undelivered); end if;
  return query select true,
    (select json_agg(lease.token order by lease.token) from holdfast.lease as lease where lease.worker = p_worker),
    (select json_agg(json_build_array(lease.token, cancel.key::integer, cancel.value ->> 'reason'))
     from holdfast.lease as lease cross join lateral jsonb_each(lease.cancels) as cancel
     where lease.worker = p_worker and lease.cancels is not null and not cancel.value ? 'heard'
       and get_bit(lease.done, cancel.key::integer) = 0),
    (select json_agg(queue.name) from holdfast.queue as queue where queue.paused);
end $$;

-- Marks cancels that took effect in the worker's handlers: [[token, position], ...].
create function holdfast.note_heard(p_worker uuid, p_heard json) returns void language plpgsql as $$
declare
  v_heard record;
begin
  for v_heard in
    select (one ->> 0)::bigint as token, one ->> 1 as place from json_array_elements(p_heard) as list (one)
    order by (one ->> 0)::bigint
  loop
    update holdfast.lease as lease set cancels = jsonb_set(lease.cancels, array[v_heard.place, 'heard'], 'true')
    where lease.token = v_heard.token and lease.worker = p_worker and lease.cancels ? v_heard.place;
  end loop;
end $$;

-- Releases every open job of these leases of the worker, and revokes the leases.
create function holdfast.release_leases(p_worker uuid, p_tokens bigint[]) returns void language plpgsql as $$
declare
  v_lease holdfast.lease;
begin
  for v_lease in
    select * from holdfast.lease as lease
    where lease.token = any (p_tokens) and lease.worker = p_worker order by lease.token for update
  loop
    perform holdfast.settle_each(v_lease, ~ v_lease.done, ~ v_lease.done, 0,
      array_fill('release'::text, array[length(v_lease.done)]), null, null, null, null, null, null);
    insert into holdfast.revoked as revoked (token) values (v_lease.token) on conflict do nothing;
  end loop;
end $$;

-- What happened to leases that a settle did not find. A lease that is neither held nor revoked was fully settled,
-- unless a crash of the server undid its claim. So a token from the range of a crash counts as finished only if the
-- batch that its claim wrote still exists. Without it the answer is false, even if the lease was finished and its jobs
-- were not kept.
create function holdfast.was_finished(p_tokens bigint[]) returns table (token bigint, finished boolean)
language plpgsql as $$
begin
  perform from holdfast.server_up;
  if not found then perform holdfast.skip_lost_tokens(); end if;
  return query
    select asked, not exists (select from holdfast.lease as lease where lease.token = asked)
      and not exists (select from holdfast.revoked as revoked where revoked.token = asked)
      and not exists (
        select from holdfast.lost_tokens as lost where asked > lost.after_token and asked < lost.before_token
          and not exists (select from holdfast.batch as batch where batch.token = asked)
      )
      and asked between 1 and coalesce(pg_sequence_last_value('holdfast.lease_token'), 0)
    from unnest(p_tokens) as asked;
end $$;
