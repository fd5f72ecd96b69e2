/** Every statement that the store sends, written for its schema. The work itself is in the functions of schema/. */
import type { Statement } from './executor.ts'
import { render, type Names } from './names.ts'

/**
 * Lists are passed as text, so that no driver converts them in its own way. The enqueues also run through the callers'
 * own libraries (see tx/): all their values are texts, each is used once and in order, and a `?` would be taken for
 * one.
 */
const TEXTS = {
  enqueue: `select holdfast.enqueue($1::text::uuid, $2::text::uuid[], $3::text::text[], $4::text::text[],
    $5::text::smallint[], $6::text::bigint[], $7::text::bigint[], $8::text::bigint[], $9::text::text,
    $10::text::text) as answers`,
  enqueueUnique: 'select holdfast.enqueue_unique($1::text::uuid, $2::text::json) as answers',
  register: `insert into holdfast.worker (id, lease_ms, expires_at, at_once)
    values ($1::uuid, $2::bigint, holdfast.now_ms() + $2::bigint, $3::integer)
    on conflict (id) do update set lease_ms = excluded.lease_ms, expires_at = excluded.expires_at`,
  retire: 'delete from holdfast.worker where id = $1::uuid',
  cycle: `select holdfast.cycle($1::uuid, $2::text::bigint[], $3::text::text[], $4::text::text[], $5::text::bigint[],
    $6::text::integer[], $7::text::text[], $8::text::boolean[], $9::text::text[], $10::boolean, $11::text, $12::integer,
    $13::text::smallint[], $14::text::bigint[], $15::text::bigint[]) as answer`,
  /** A separate statement, so that the many cycles without reports have no parameter for them. */
  cycleWithReports: `select holdfast.cycle_with_reports($16::text::json, $17::integer, $1::uuid, $2::text::bigint[],
    $3::text::text[], $4::text::text[], $5::text::bigint[], $6::text::integer[], $7::text::text[], $8::text::boolean[],
    $9::text::text[], $10::boolean, $11::text, $12::integer, $13::text::smallint[], $14::text::bigint[],
    $15::text::bigint[]) as answer`,
  overlooked: `select ranks, took_ms as "tookMs", workers from holdfast.overlooked($1::text, $2::text::smallint[],
    $3::text::bigint[], $4::text::bigint[])`,
  wasFinished: 'select token, finished from holdfast.was_finished($1::text::bigint[])',
  heartbeat: `select * from holdfast.heartbeat($1::uuid, $2::text::bigint[], $3::text::json, $4::integer,
    $5::integer)`,
  channel: 'select holdfast.channel() as channel',
  promote: 'select * from holdfast.promote($1::integer)',
  lockCrashed: 'select * from holdfast.lock_crashed($1::integer)',
  settleCrashed: 'select holdfast.settle_crashed($1::text::json)',
  removeWorkers: 'select id from holdfast.remove_workers() as id',
  prune: `select holdfast.prune($1::bigint, $2::bigint, $3::bigint, $4::bigint, $5::bigint, $6::bigint, $7::integer)
    as pruned`,
  pruneExpired: 'select more, next from holdfast.prune_expired($1::bigint, $2::integer, $3::bigint)',
  makePartition: 'select holdfast.make_partitions($1::integer, 1) as made',
  oldPartitions: 'select name from holdfast.old_partitions(holdfast.now_ms() - $1::bigint) as name',
  dropPartition: 'select holdfast.drop_partition($1::text) as dropped',
  pruneBatchRest: `select holdfast.prune_batch_rest(holdfast.now_ms() - $1::bigint, $2::bigint, $3::integer) as last`,
  lead: 'select holdfast.lead($1::uuid, $2::bigint) as leads',
  stepDown: 'delete from holdfast.leader where candidate = $1::uuid',
  putSchedule: `insert into holdfast.schedule (id, spec, next_tick) values ($1::text, $2::text, $3::bigint)
    on conflict (id) do update set spec = excluded.spec, next_tick = excluded.next_tick`,
  removeSchedule: 'delete from holdfast.schedule where id = $1::text returning id',
  schedules: `select (select holdfast.now_ms()) as now, id, spec, next_tick, last_tick
    from (select) as always left join holdfast.schedule on true order by id`,
  fire: 'select holdfast.fire($1::text, $2::bigint, $3::bigint, $4::text::json) as outcome',
  getJobs: 'select job from holdfast.get_jobs($1::text::uuid[])',
  list: `select looked, unread, job from holdfast.list_jobs($1::text::text[], $2::text::text[], $3::text::text[],
    $4::text::text[], $5::text::text[], $6::bigint, $7::bigint, $8::bigint, $9::bigint, $10::uuid, $11::uuid, $12::boolean,
    $13::integer, $14::integer)`,
  deadGroups: `select looked, unread, dead_group from holdfast.dead_groups($1::text::text[], $2::text::text[],
    $3::text::text[], $4::text::text[], $5::bigint, $6::bigint, $7::bigint, $8::bigint, $9::uuid, $10::uuid, $11::integer,
    $12::integer)`,
  queues: 'select * from holdfast.queue_status order by queue',
  compactCounts: 'select compacted, block from holdfast.compact_counts($1::integer, $2::bigint)',
  setPaused: 'select holdfast.set_paused($1::text, $2::boolean)',
  change: `select holdfast.change($1::text::uuid[], $2::text::text[], $3::text, $4::text, $5::text) as outcomes`,
  edit: `select holdfast.edit_all($1::text::uuid[], $2::text::text[], $3::text, $4::smallint, $5::bigint, $6::bigint,
    $7::bigint) as outcomes`,
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
 * The calls that a worker depends on take milliseconds, so they are given up soon: a silent connection would
 * otherwise hold them up long after the server is back.
 */
const URGENT: ReadonlySet<string> = new Set<keyof typeof TEXTS>([
  'register',
  'retire',
  'cycle',
  'overlooked',
  'wasFinished',
  'heartbeat',
  'cycleWithReports',
  'channel',
  'lead',
  'stepDown',
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
