-- The jobs that have their own row. holdfast.packed_job has all others, with the same columns.
create view holdfast.job as
  select ready.id, 'ready' as state, ready.queue, ready.name, ready.due_at, ready.created_at, ready.attempt, ready.crashes,
    ready.facts, ready.payload, ready.unique_key, ready.past, null::bigint as token, null::uuid as worker,
    null::bigint as claimed_at, null::boolean as cancel_requested, null::bigint as finished_at, null::bigint as run_ms,
    null::text as result, null::boolean as result_dropped, null::text as reason, null::jsonb as error
  from holdfast.ready as ready
  union all
  select scheduled.id, 'scheduled', scheduled.queue, scheduled.name, scheduled.due_at, scheduled.created_at,
    scheduled.attempt, scheduled.crashes, scheduled.facts, scheduled.payload, scheduled.unique_key, scheduled.past, null, null,
    null, null, null, null, null, null, null, null
  from holdfast.scheduled as scheduled
  union all
  select dead.id, 'dead', dead.queue, dead.name, dead.due_at, dead.created_at, dead.attempt, dead.crashes, dead.facts,
    dead.payload, dead.unique_key, dead.past, null, null, null, null, dead.finished_at, null, null, null, null, dead.error
  from holdfast.dead as dead
  union all
  select ended.id, case when ended.completed then 'completed' else 'cancelled' end, ended.queue, ended.name, ended.due_at,
    ended.created_at, ended.attempt, ended.crashes, ended.facts, ended.payload, ended.unique_key, ended.past, ended.token,
    ended.worker, null, null, ended.finished_at, ended.run_ms, ended.result, ended.result_dropped, ended.reason, null
  from holdfast.ended as ended;
