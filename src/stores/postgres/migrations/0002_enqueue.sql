-- Enqueues. What is called all the time keeps its plans (force_generic_plan): for so many lists PostgreSQL would plan each call
-- anew, which costs milliseconds. A flush is written once, however often it is sent: its row in intake is inserted in the same step as its
-- jobs, and whoever comes second waits for the first and then finds it.

-- The channel of wake-ups: of this schema alone, since NOTIFY is heard in the whole database.
create function holdfast.channel() returns text language sql stable as $$
  select 'holdfast_' || 'holdfast.ready'::regclass::oid
$$;

-- A lane of a queue has a job at this rank that it may not have had before.
create function holdfast.tell_ready(p_queue text, p_lane smallint, p_rank bigint) returns void language sql as $$
  select pg_notify(holdfast.channel(), 'ready ' || p_lane || ' ' || p_rank || ' ' || p_queue)
$$;

-- A job falls due this soon.
create function holdfast.tell_due(p_in_ms bigint) returns void language sql as $$
  select pg_notify(holdfast.channel(), 'due ' || greatest(p_in_ms, 0))
$$;

-- Jobs without unique keys. p_due_in: ms from now, p_due_at: a time; both null means now. Null for a whole list means that
-- none has it; queues, lanes and head starts that are all the same come once. Bodies come as lines, since the
-- client's JSON has no line break, and long payloads apart, with a character between them that no JSON holds: arrays
-- would have to be quoted there and parsed here. Answers null where the flush is new, else what the first was answered ([] for
-- "all inserted").
create function holdfast.enqueue(
  p_flush uuid, p_ids uuid[], p_queues text[], p_lanes smallint[], p_head_starts bigint[],
  p_due_in bigint[], p_due_at bigint[], p_longs boolean[], p_bodies text, p_long_ids uuid[], p_long_payloads text
) returns json language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  v_now constant bigint := holdfast.now_ms();
  v_bodies constant text[] := string_to_array(p_bodies, E'\n');
  v_answers json;
  v_told bigint;
begin
  insert into holdfast.intake (id, at) values (p_flush, v_now) on conflict (id) do nothing;
  if not found then
    select answers into v_answers from holdfast.intake where id = p_flush;
    return coalesce(v_answers, '[]');
  end if;

  if p_due_in is null and p_due_at is null and cardinality(p_queues) = 1 and cardinality(p_lanes) = 1
    and cardinality(p_head_starts) = 1 then
    insert into holdfast.ready (id, rank, due_at, created_at, lane, long, queue, body)
    select id, v_now - p_head_starts[1], v_now, v_now, p_lanes[1], coalesce(long, false), p_queues[1], body
    from unnest(p_ids, p_longs, v_bodies) as job (id, long, body);
    perform holdfast.tell_ready(p_queues[1], p_lanes[1], v_now - p_head_starts[1]);
  else
    with written as (
      insert into holdfast.ready (id, rank, due_at, created_at, lane, long, queue, body)
      select id, v_now - coalesce(head_start, p_head_starts[1]), v_now, v_now, coalesce(lane, p_lanes[1]),
        coalesce(long, false), coalesce(queue, p_queues[1]), body
      from unnest(p_ids, p_queues, p_lanes, p_head_starts, p_due_in, p_due_at, p_longs, v_bodies)
        as job (id, queue, lane, head_start, due_in, due_at, long, body)
      where coalesce(due_at, v_now + due_in, v_now) <= v_now
      returning queue, lane, rank
    ), lowest as (
      select queue, lane, min(rank) as rank from written group by queue, lane
    )
    select count(holdfast.tell_ready(queue, lane, rank)) into v_told from lowest;
  end if;

  if p_due_in is not null or p_due_at is not null then
    with written as (
      insert into holdfast.scheduled (id, rank, due_at, created_at, lane, long, queue, body)
      select id, due - coalesce(head_start, p_head_starts[1]), due, v_now, coalesce(lane, p_lanes[1]),
        coalesce(long, false), coalesce(queue, p_queues[1]), body
      from unnest(p_ids, p_queues, p_lanes, p_head_starts, p_due_in, p_due_at, p_longs, v_bodies)
        as job (id, queue, lane, head_start, due_in, due_at, long, body),
        lateral (select coalesce(due_at, v_now + due_in, v_now) as due) as when_due
      where due > v_now
      returning due_at
    )
    select count(holdfast.tell_due(soonest - v_now)) into v_told
    from (select min(due_at) as soonest from written having count(*) > 0) as next;
  end if;

  if p_long_ids is not null then
    insert into holdfast.payload (id, body)
    select * from unnest(p_long_ids, string_to_array(p_long_payloads, E'\x1e'));
  end if;
  return null;
end $$;
