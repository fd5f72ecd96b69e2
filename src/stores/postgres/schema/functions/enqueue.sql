-- Enqueues jobs without unique keys. The flush is written once, however often it is sent: its row in intake is inserted in
-- the same step as its jobs, and a repeat waits for the first try and then finds it. Facts are separated by line breaks,
-- payloads by U+001E: the client's JSON contains neither, and texts are cheaper than arrays. p_due_in: ms from now,
-- p_due_at: a time; null for both means now. Returns null if the flush is new, otherwise the first answer ([] for "all
-- inserted").
create function holdfast.enqueue(
  p_flush uuid, p_ids uuid[], p_queues text[], p_names text[], p_priorities smallint[], p_head_starts bigint[],
  p_due_in bigint[], p_due_at bigint[], p_facts text, p_payloads text
) returns json language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_now constant bigint := holdfast.now_ms();
  v_dues bigint[];
begin
  insert into holdfast.intake as intake (id, at) values (p_flush, v_now) on conflict (id) do nothing;
  if not found then
    return (select coalesce(intake.answers, '[]') from holdfast.intake as intake where intake.id = p_flush);
  end if;
  if p_due_in is not null or p_due_at is not null then
    v_dues := array(
      select greatest(coalesce(job.due_at, v_now + job.due_in, v_now), v_now)
      from rows from (unnest(p_ids), unnest(p_due_in), unnest(p_due_at)) with ordinality as job (id, due_in, due_at, place)
      order by job.place
    );
  end if;
  perform holdfast.admit(v_now, p_ids, p_queues, p_names, p_priorities, p_head_starts, v_dues, null, null, null, null, null,
    null, string_to_array(p_facts, E'\n'), string_to_array(p_payloads, E'\x1e'));
  return null;
end $$;
