/** Every statement that the store sends, written for its schema. The work itself is in the functions of migrations/. */
import type { Statement } from './executor.ts'
import { render, type Names } from './names.ts'

/** A filter over job_record, or what looks like it. */
const MATCHES = `($1::text is null or id = any ($1::text::uuid[])) and ($2::text is null or state = any ($2::text::text[]))
  and ($3::text is null or queue = any ($3::text::text[]))
  and ($4::text is null or job -> 1 ->> 1 = any ($4::text::text[]))
  and ($5::text is null
    or coalesce(error ->> 'fingerprint', job -> 5 -> 'error' ->> 'fingerprint') = any ($5::text::text[]))
  and ($6::bigint is null or finished_at >= $6::bigint) and ($7::bigint is null or finished_at < $7::bigint)`

/**
 * Lists come as text, so that no driver tries to be clever about them. The enqueues also run through the callers' own
 * libraries (see tx/): all their values are texts, each is used once and in order, and a `?` would be taken for one.
 */
const TEXTS = {
  enqueue: `select holdfast.enqueue($1::text::uuid, $2::text::uuid[], $3::text::text[], $4::text::smallint[],
    $5::text::bigint[], $6::text::bigint[], $7::text::bigint[], $8::text::boolean[], $9::text::text,
    $10::text::uuid[], $11::text::text) as answers`,
  enqueueUnique: 'select holdfast.enqueue_unique($1::text::uuid, $2::text::json) as answers',
  register: `insert into holdfast.worker (id, lease_ms, expires_at)
    values ($1::uuid, $2::bigint, holdfast.now_ms() + $2::bigint)
    on conflict (id) do update set lease_ms = excluded.lease_ms, expires_at = excluded.expires_at`,
  retire: 'delete from holdfast.worker where id = $1::uuid',
  cycle: `select * from holdfast.cycle($1::uuid, $2::text::bigint[], $3::text::text[], $4::text::integer[],
    $5::text::text[], $6::text::bigint[], $7::text::bigint[], $8::text::text[], $9::text::boolean[], $10::boolean,
    $11::text::text[], $12::text, $13::integer, $14::text::smallint[], $15::text::bigint[])`,
  settle: `select holdfast.settle($1::uuid, $2::text::bigint[], $3::text::text[], $4::text::integer[], $5::text::text[],
    $6::text::bigint[], $7::text::bigint[], $8::text::text[], $9::text::boolean[], $10::boolean,
    $11::text::text[]) as settled`,
  longPayloads: 'select id, body from holdfast.payload where id = any ($1::text::uuid[])',
  wasFinished: 'select token, finished from holdfast.was_finished($1::text::bigint[])',
  heartbeat: 'select * from holdfast.heartbeat($1::uuid, $2::text::bigint[])',
  report: 'select holdfast.report($1::uuid, $2::text::json, $3::integer)',
  channel: 'select holdfast.channel() as channel',
  promote: 'select * from holdfast.promote($1::integer)',
  takeCrashed: 'select * from holdfast.take_crashed($1::integer)',
  placeOrphans: 'select holdfast.place_orphans($1::text::json)',
  buryWorkers: 'select id from holdfast.bury_workers() as id',
  prune: `select holdfast.prune($1::bigint, $2::bigint, $3::bigint, $4::bigint, $5::bigint, $6::bigint, $7::bigint,
    $8::integer) as pruned`,
  makePartitions: 'select holdfast.make_partitions($1::integer)',
  dropPartitions: 'select holdfast.drop_partitions(holdfast.now_ms() - $1::bigint) as dropped',
  lead: 'select holdfast.lead($1::uuid, $2::bigint) as leads',
  resign: 'delete from holdfast.leader where candidate = $1::uuid',
  putSchedule: `insert into holdfast.schedule (id, spec, next_slot) values ($1::text, $2::text, $3::bigint)
    on conflict (id) do update set spec = excluded.spec, next_slot = excluded.next_slot`,
  removeSchedule: 'delete from holdfast.schedule where id = $1::text returning id',
  schedules: 'select id, spec, next_slot, last_slot from holdfast.schedule order by id',
  fire: 'select holdfast.fire($1::text, $2::bigint, $3::bigint, $4::text::json) as outcome',
  get: `select job.*, long.body as long_payload from holdfast.job_record as job
    left join holdfast.payload as long on long.id = job.id where job.id = $1::uuid`,
  list: `select job.*, long.body as long_payload from (
      select * from holdfast.job_record as job where ${MATCHES} and ($8::uuid is null or id < $8::uuid)
      order by id desc limit $9::integer
    ) as job
    left join holdfast.payload as long on long.id = job.id order by job.id desc`,
  pick: `select id from holdfast.job_record as job where ${MATCHES} and ($8::uuid is null or id > $8::uuid)
    order by id limit $9::integer`,
  deadGroups: `with page as materialized (
      select id, finished_at, queue, job -> 1 ->> 1 as name, error ->> 'fingerprint' as fingerprint,
        error ->> 'kind' as kind, error ->> 'message' as message, row_number() over (order by id) as place
      from (select *, 'dead'::text as state from holdfast.dead) as job
      where ${MATCHES} and id > coalesce($8::uuid, '00000000-0000-0000-0000-000000000000')
      order by id limit $9::integer + 1
    ), groups as (
      select queue, name, fingerprint, count(*)::integer as count, min(finished_at) as first_at,
        max(finished_at) as last_at, (array_agg(id order by finished_at desc, id desc))[1] as newest
      from page where place <= $9::integer group by queue, name, fingerprint
    )
    select groups.*, page.kind, page.message,
      (select last.id from page as last
        where place = $9::integer and exists (select from page where place > $9::integer)) as next
    from groups join page on page.id = groups.newest order by groups.count desc, groups.last_at desc`,
  queues: `select name as queue, coalesce(bool_or(paused), false) as paused, sum(scheduled)::integer as scheduled,
      sum(ready)::integer as ready, sum(running)::integer as running, sum(completed)::integer as completed,
      sum(dead)::integer as dead, sum(cancelled)::integer as cancelled, min(oldest) as oldest
    from (
      select name, paused, 0 as scheduled, 0 as ready, 0 as running, 0 as completed, 0 as dead, 0 as cancelled,
        null::bigint as oldest
      from holdfast.queue
      union all
      select queue, null, count(*), 0, 0, 0, 0, 0, null from holdfast.scheduled group by queue
      union all
      select queue, null, 0, count(*), 0, 0, 0, 0, min(due_at) from holdfast.ready group by queue
      union all
      select queue, null, 0, 0, sum(length(replace(done::text, '1', ''))), 0, 0, 0, null from holdfast.lease group by queue
      union all
      select queue, null, 0, 0, 0, count(*) filter (where not cancelled), 0, count(*) filter (where cancelled), null
      from holdfast.history group by queue
      union all
      select queue, null, 0, 0, 0, 0, count(*), 0, null from holdfast.dead group by queue
    ) as counts
    group by name order by name`,
  setPaused: 'select holdfast.set_paused($1::text, $2::boolean)',
  cancel: 'select holdfast.cancel($1::uuid, $2::text) as outcome',
  change: 'select holdfast.change($1::text::uuid[], $2::text, $3::text, $4::text) as changed',
  edit: 'select holdfast.edit($1::uuid, $2::text, $3::smallint, $4::bigint, $5::bigint, $6::bigint) as outcome',
  putNote: `insert into holdfast.note (kind, id, text, until)
    values ($1::text, $2::text, $3::text, holdfast.now_ms() + $4::bigint)
    on conflict (kind, id) do update set text = excluded.text, until = excluded.until`,
  removeNote: `delete from holdfast.note where kind = $1::text and id = $2::text
    and (until is null or until > (select holdfast.now_ms())) returning id`,
  notes: `select id, text from holdfast.note where kind = $1::text
    and (until is null or until > (select holdfast.now_ms())) order by id`,
  /** Pairs of one value, since a library may rename columns and keys. */
  notesAsJson: `select coalesce(json_agg(json_build_array(id, text) order by id), '[]') from holdfast.note
    where kind = $1::text and (until is null or until > (select holdfast.now_ms()))`,
} as const

export type Statements = Readonly<Record<keyof typeof TEXTS, Statement>>

/**
 * What a worker cannot do without takes milliseconds, and is given up soon: a connection whose other end is silent would
 * otherwise be in the way for long after the server is back.
 */
const URGENT: ReadonlySet<string> = new Set<keyof typeof TEXTS>([
  'register',
  'retire',
  'cycle',
  'wasFinished',
  'heartbeat',
  'report',
  'channel',
  'lead',
  'resign',
])
const URGENT_MS = 3_000

export function statementsFor(names: Names): Statements {
  const entries = Object.entries(TEXTS).map(([name, text]): [string, Statement] => [
    name,
    {
      name: `${names.schema}.${names.prefix}${name}`,
      text: render(text, names),
      ...(URGENT.has(name) ? { timeoutMs: URGENT_MS } : {}),
    },
  ])
  return Object.fromEntries(entries) as Statements
}
