-- The jobs that are in a batch: running ones, whose position is open under the lease, and completed ones.
create view holdfast.packed_job as
  select job.id, case when lease.token is null then 'completed' else 'running' end as state, batch.queue, unpacked.name,
    unpacked.due_at, unpacked.created_at, unpacked.attempt, unpacked.crashes, unpacked.facts, job.payload,
    unpacked.unique_key, holdfast.past_after(unpacked.past, lease.reported -> (job.place - 1)::text, null) as past, batch.token,
    coalesce(lease.worker, history.worker) as worker, lease.claimed_at,
    case when lease.token is not null then coalesce(lease.cancels ? (job.place - 1)::text, false) end as cancel_requested,
    history.finished_at, history.run_ms[entry.number]::bigint as run_ms, history.results[entry.number] as result,
    case when history.token is not null then coalesce(history.dropped[entry.number], false) end as result_dropped,
    null::text as reason, null::jsonb as error
  from holdfast.batch as batch
  cross join lateral rows from (
    unnest(batch.ids), json_array_elements(('[' || batch.jobs || ']')::json),
    unnest(string_to_array(batch.payloads, E'\x1e', ''))
  ) with ordinality as job (id, job, payload, place)
  cross join lateral holdfast.unpack_job(job.job) as unpacked
  left join holdfast.lease as lease
    on lease.token = batch.token and get_bit(lease.done, (job.place - 1)::integer) = 0
  left join holdfast.history as history
    on history.token = batch.token and (history.mask is null or get_bit(history.mask, (job.place - 1)::integer) = 1)
  left join lateral (
    select case when history.mask is null then job.place::integer
      else holdfast.bits(substring(history.mask from 1 for job.place::integer)) end as number
  ) as entry on true
  where lease.token is not null or history.token is not null;
