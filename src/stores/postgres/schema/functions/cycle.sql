-- Settles, then claims, so that the claim can take what the settle released. Either part may be left out (p_leases or
-- p_queue null). The first row is 'a' if the worker is alive, otherwise 'd', followed by the answer of holdfast.settle,
-- and behind U+001C the answer of holdfast.claim. Each further row is the payload of a claimed job that has it in the
-- table payload, in order of id. Payloads in the first row cost the server twice as much at 8 KB, and a second
-- statement for them would wait for a client that is busy with earlier jobs.
--
-- A call that settles nothing does not wait for the disk. If the server crashes in the next moments, the claim never happened
-- and its jobs start again, which at-least-once allows. Its token is never used again, see holdfast.skip_lost_tokens. Only
-- synchronous_commit = 'on' is lowered; under any other setting claims commit like everything else.
create function holdfast.cycle(
  p_worker uuid, p_leases bigint[], p_masks text[], p_kinds text[], p_delays bigint[], p_run_ms integer[],
  p_details text[], p_dropped boolean[], p_records text[], p_forget boolean, p_queue text, p_limit integer,
  p_lanes smallint[], p_from bigint[], p_to bigint[]
) returns setof text language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_alive boolean;
  v_settled text := '';
  v_claimed record;
  v_found integer;
begin
  if p_leases is null and current_setting('synchronous_commit') = 'on' then
    perform set_config('synchronous_commit', 'off', true);
  end if;
  perform from holdfast.worker as worker where worker.id = p_worker for key share;
  v_alive := found;
  if p_leases is not null then
    v_settled := holdfast.settle(p_worker, p_leases, p_masks, p_kinds, p_delays, p_run_ms, p_details, p_dropped, p_records,
      p_forget);
  end if;
  if not v_alive or p_queue is null then
    return next case when v_alive then 'a' else 'd' end || v_settled;
    return;
  end if;
  perform from holdfast.server_up;
  if not found then perform holdfast.skip_lost_tokens(); end if;
  v_claimed := holdfast.claim(p_worker, p_queue, p_limit, p_lanes, p_from, p_to);
  return next 'a' || v_settled || E'\x1c' || v_claimed.answer;
  if v_claimed.large is null then return; end if;
  return query select payload.body from holdfast.payload as payload where payload.id = any (v_claimed.large) order by payload.id;
  get diagnostics v_found = row_count;
  if v_found <> cardinality(v_claimed.large) then
    raise exception 'claimed % jobs with large payloads, but found % payloads', cardinality(v_claimed.large), v_found;
  end if;
end $$;

-- The same, with reports as holdfast.report takes them, which are kept before anything is settled. A separate function,
-- so that a cycle without reports costs nothing extra. It locks every lease of the call first, in order of token:
-- reports and settles would otherwise each begin at the lowest.
create function holdfast.cycle_with_reports(
  p_reports json, p_lines integer, p_worker uuid, p_leases bigint[], p_masks text[], p_kinds text[], p_delays bigint[],
  p_run_ms integer[], p_details text[], p_dropped boolean[], p_records text[], p_forget boolean, p_queue text,
  p_limit integer, p_lanes smallint[], p_from bigint[], p_to bigint[]
) returns setof text language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  perform from holdfast.worker as worker where worker.id = p_worker for key share;
  perform from holdfast.lease as lease
  where lease.worker = p_worker and lease.token = any (p_leases || array(
    select (report ->> 0)::bigint from json_array_elements(p_reports) as list (report)
  ))
  order by lease.token for update;
  perform holdfast.report(p_worker, p_reports, p_lines);
  return query select * from holdfast.cycle(p_worker, p_leases, p_masks, p_kinds, p_delays, p_run_ms, p_details, p_dropped,
    p_records, p_forget, p_queue, p_limit, p_lanes, p_from, p_to);
end $$;

-- Runs once after each crash of the server, before the first claim or before the first answer about a lease that is
-- gone. Recovery may put the token sequence back behind tokens that claims had taken shortly before the crash; skipping
-- a million tokens is beyond all of them. Claims do not commit in order of token either, so a token up to 100,000 below
-- the sequence may be lost although a greater one reached the disk. holdfast.was_finished requires proof in this range.
-- Other sessions wait for this transaction, which does wait for the disk: the next crash must not undo the skip.
create function holdfast.skip_lost_tokens() returns void language plpgsql as $$
declare
  v_next bigint;
begin
  insert into holdfast.server_up default values on conflict (one) do nothing;
  if not found then return; end if;
  perform set_config('synchronous_commit', 'local', true);
  v_next := nextval('holdfast.lease_token');
  insert into holdfast.lost_tokens (after_token, before_token)
  values (v_next - 100000, setval('holdfast.lease_token', v_next + 1000000));
end $$;
