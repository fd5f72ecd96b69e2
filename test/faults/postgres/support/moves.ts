/** From rows that came and went to moves of jobs, transaction by transaction. */
import type { By, MoveEvent, SettlementType, State } from '../../../checker/history.ts'
import type { TimedEvent } from '../../../support/recorded-store.ts'

/** One row of the audit. */
export interface Entry {
  readonly seq: number
  readonly tx: number
  /** When its transaction committed, in milliseconds since 1970. */
  readonly at: number
  /** The function or table that the client's statement names first. */
  readonly statement: string | null
  readonly relation: string
  readonly op: 'INSERT' | 'UPDATE' | 'DELETE'
  readonly old: Row | null
  readonly new: Row | null
}

/** What was asked for at a position of a lease; undefined where nobody recorded it. */
export type SettlementOf = (token: number, position: number) => SettlementType | undefined

type Row = Readonly<Record<string, unknown>>
/** What never changes while a job lives. */
interface Body {
  /** Null if it is in the table payload. */
  readonly payload: string | null
  readonly key: string | null
  /** Null where the table does not say. */
  readonly hold: number | null
}

/** As a batch holds a job, see schema/functions/packed_jobs.sql. */
type Packed = readonly [
  dueAt: number,
  facts: readonly [id: string, name: string, priority: number, headStart: number],
  attempt?: number,
  crashes?: number,
  createdAt?: number,
  past?: unknown,
  key?: string | null,
  hold?: number | null,
]

/** What a claim took, by position. */
interface Batch {
  readonly queue: string
  readonly ids: readonly string[]
  readonly jobs: readonly Packed[]
  readonly payloads: readonly string[]
}

/** A job in a table: where it stands, and how. */
interface Place {
  readonly state: State
  readonly queue: string
  readonly attempt: number
  readonly crashes: number
  readonly dueAt: number
  readonly rank: number
  readonly body: Body
  readonly lease: { readonly token: number; readonly worker: string; readonly position: number } | null
}

interface Step {
  readonly way: 'in' | 'out'
  readonly job: string
  readonly place: Place
  readonly statement: string
}

interface Key {
  readonly job: string
  readonly until: number | null
}

/** In the order of the transactions, and in each in the order of its rows. */
export function movesOf(entries: readonly Entry[], settlementOf: SettlementOf): TimedEvent[] {
  const writer = new Moves(settlementOf)
  const transactions = new Map<number, Entry[]>()
  for (const entry of entries) {
    const rows = transactions.get(entry.tx)
    if (rows === undefined) transactions.set(entry.tx, [entry])
    else rows.push(entry)
  }
  return [...transactions.values()].flatMap((rows) => writer.transaction(rows, rows[0]?.at ?? 0))
}

class Moves {
  readonly #settlementOf: SettlementOf
  readonly #places = new Map<string, Place>()
  readonly #keys = new Map<string, Key>()
  readonly #batches = new Map<number, Batch>()

  constructor(settlementOf: SettlementOf) {
    this.#settlementOf = settlementOf
  }

  transaction(entries: readonly Entry[], t: number): TimedEvent[] {
    for (const entry of entries) {
      if (entry.relation === 'unique_key') this.#noteKey(entry)
      if (entry.relation === 'batch' && entry.new !== null)
        this.#batches.set(entry.new['token'] as number, batchOf(entry.new))
    }
    const steps = entries.flatMap((entry) => stepsOf(entry, this.#batches))
    const left = new Map<string, Place[]>()
    for (const { way, job, place } of steps) {
      if (way === 'out') left.set(job, [...(left.get(job) ?? []), place])
    }
    const moves = steps.flatMap((step) => (step.way === 'in' ? [this.#arrived(step, left, t)] : []))
    const forgotten = [...left].flatMap(([job, places]) =>
      places.map((place) => this.#forgotten(job, place, steps, t)),
    )
    return [...moves, ...forgotten, ...entries.flatMap((entry) => othersOf(entry, t))]
  }

  #noteKey({ op, old, new: now }: Entry): void {
    const row = (now ?? old) as { key: string; job: string; until: number | null }
    if (op === 'DELETE') this.#keys.delete(row.key)
    else this.#keys.set(row.key, { job: row.job, until: row.until })
  }

  /** One row of a job goes for each that comes: its place before, or the one it had a moment ago. */
  #arrived({ job, place: row, statement }: Step, left: Map<string, Place[]>, t: number): TimedEvent {
    const before = this.#places.get(job) ?? null
    // The table ended does not say how long a key is held.
    const place = before !== null && row.body.hold === null ? withHold(row, before.body.hold) : row
    const leaving = left.get(job) ?? []
    const from = leaving.find((one) => isSame(one, before))
    if (before !== null && from === undefined)
      throw senseless(job, `is ${place.state}, and ${before.state} still`)
    if (before === null && leaving.length > 0 && place.state !== 'ready' && place.state !== 'scheduled')
      throw senseless(job, 'left a place that it had never come to')
    left.set(
      job,
      leaving.filter((one) => one !== from),
    )
    if (left.get(job)?.length === 0) left.delete(job)
    this.#places.set(job, place)
    return this.#move(job, before, place, byOf(statement, before, place), t)
  }

  #forgotten(job: string, place: Place, steps: readonly Step[], t: number): TimedEvent {
    const { statement } = steps.find((one) => one.way === 'out' && one.job === job) as Step
    this.#places.delete(job)
    return this.#move(job, place, null, byOf(statement, place, null), t)
  }

  #move(job: string, from: Place | null, to: Place | null, by: By, t: number): TimedEvent {
    const now = (to ?? from) as Place
    const lease = to?.lease ?? from?.lease ?? null
    const settlement = by === 'settle' && lease !== null ? this.#settlement(lease, to) : undefined
    const move: Omit<MoveEvent, 'seq'> = {
      type: 'move',
      t,
      job,
      from: from?.state ?? null,
      to: to?.state ?? null,
      by,
      queue: now.queue,
      token: lease?.token ?? null,
      worker: lease?.worker ?? null,
      attempt: now.attempt,
      crashes: now.crashes,
      rank: now.rank,
      dueAt: now.dueAt,
      unique: this.#unique(job, now.body, t),
      ...(settlement === undefined ? {} : { settlement }),
      ...(by === 'enqueue' || by === 'replace' ? { payload: now.body.payload ?? '' } : {}),
    }
    return move
  }

  #settlement({ token, position }: NonNullable<Place['lease']>, to: Place | null): SettlementType {
    return this.#settlementOf(token, position) ?? SETTLED_AS[to?.state ?? 'completed']
  }

  #unique(job: string, body: Body, t: number): MoveEvent['unique'] {
    const { key } = body
    if (key === null) return null
    const holder = this.#keys.get(key)
    const until = holder?.job === job ? earliest(holder.until ?? Infinity) : -Infinity
    // Keys are as the transaction left them: where it changed a job twice, the first change may have a hold that is over.
    const timed = (body.hold ?? 0) > 0 && until < Infinity
    const hold = (body.hold ?? 0) < 0 ? 'ready' : timed ? until - t : 'unfinished'
    return { key, hold, held: until > t }
  }
}

/** The store rounds its clock to whole milliseconds: by a finer one, a time may be over that much sooner. */
function earliest(ms: number): number {
  return ms - 1
}

/** Where only the outcome is known. Nobody snoozes here. */
const SETTLED_AS: Readonly<Record<State, SettlementType>> = {
  scheduled: 'retry',
  blocked: 'retry',
  ready: 'release',
  running: 'release',
  completed: 'completed',
  dead: 'dead',
  cancelled: 'cancelled',
}

function stepsOf(entry: Entry, batches: ReadonlyMap<number, Batch>): Step[] {
  const { relation, op, old, new: now } = entry
  const statement = entry.statement ?? 'nothing of ours'
  if (relation === 'lease') {
    if (op === 'INSERT') return packedSteps(now as Row, 'in', statement, batches, () => true)
    const before = (old as Row)['done'] as string
    const after = op === 'DELETE' ? before.replaceAll('0', '1') : ((now as Row)['done'] as string)
    return packedSteps(old as Row, 'out', statement, batches, (at) => before[at] === '0' && after[at] === '1')
  }
  if (relation === 'history') {
    const has = (row: Row | null, at: number): boolean =>
      row !== null && (row['mask'] === null || (row['mask'] as string)[at] === '1')
    return [
      ...(old === null
        ? []
        : packedSteps(old, 'out', statement, batches, (at) => has(old, at) && !has(now, at))),
      ...(now === null
        ? []
        : packedSteps(now, 'in', statement, batches, (at) => has(now, at) && !has(old, at))),
    ]
  }
  const placeIn = PLACES[relation]
  if (placeIn === undefined) return []
  return [
    ...(old === null
      ? []
      : [{ way: 'out' as const, job: old['id'] as string, place: placeIn(old), statement }]),
    ...(now === null
      ? []
      : [{ way: 'in' as const, job: now['id'] as string, place: placeIn(now), statement }]),
  ]
}

/** Rows of lease and history, which name positions of a batch. */
function packedSteps(
  row: Row,
  way: Step['way'],
  statement: string,
  batches: ReadonlyMap<number, Batch>,
  concerns: (at: number) => boolean,
): Step[] {
  const { token, worker } = row as { token: number; worker: string }
  const batch = batches.get(token)
  if (batch === undefined) throw new Error(`The audit makes no sense: lease ${token} has no batch.`)
  const isRunning = 'done' in row
  return batch.ids.flatMap((job, position) => {
    if (!concerns(position)) return []
    const place = packedPlace(isRunning ? 'running' : 'completed', batch, position)
    return [
      { way, job, statement, place: isRunning ? { ...place, lease: { token, worker, position } } : place },
    ]
  })
}

function batchOf(row: Row): Batch {
  const { queue, ids, jobs, payloads } = row as Record<'queue' | 'jobs' | 'payloads', string> & {
    ids: string[]
  }
  return { queue, ids, jobs: JSON.parse(`[${jobs}]`) as Packed[], payloads: payloads.split('\x1e') }
}

function packedPlace(state: State, batch: Batch, position: number): Place {
  const packed = batch.jobs[position]
  if (packed === undefined) throw new Error('The audit makes no sense: a batch has fewer jobs than ids.')
  const [dueAt, [, , , headStart], attempt = 1, crashes = 0, , , key, hold] = packed
  const body: Body = { payload: batch.payloads[position] || null, key: key ?? null, hold: hold ?? 0 }
  return { state, queue: batch.queue, attempt, crashes, dueAt, rank: dueAt - headStart, body, lease: null }
}

const PLACES: Readonly<Record<string, (row: Row) => Place>> = {
  ready: (row) => placeOf('ready', row),
  scheduled: (row) => placeOf('scheduled', row),
  dead: (row) => placeOf('dead', row),
  ended: (row) => placeOf(row['completed'] === true ? 'completed' : 'cancelled', row),
}

/** A job that has a row of its own. */
function placeOf(state: State, row: Row): Place {
  const { queue, attempt, crashes } = row as unknown as Place
  const dueAt = row['due_at'] as number
  const [, , , headStart] = JSON.parse(row['facts'] as string) as Packed[1]
  const body: Body = {
    payload: row['payload'] as string | null,
    key: row['unique_key'] as string | null,
    hold: 'unique_hold' in row ? ((row['unique_hold'] as number | null) ?? 0) : null,
  }
  return { state, queue, attempt, crashes, dueAt, rank: dueAt - headStart, body, lease: null }
}

function withHold(place: Place, hold: number | null): Place {
  return { ...place, body: { ...place.body, hold } }
}

function isSame(one: Place, other: Place | null): boolean {
  return one.state === other?.state && one.lease?.token === other.lease?.token
}

/** What a statement may have done to a job that went from here to there. */
function byOf(statement: string, from: Place | null, to: Place | null): By {
  switch (statement) {
    case 'enqueue':
    case 'enqueue_unique':
    case 'fire':
      if (from === null) return 'enqueue'
      return from.body.payload === to?.body.payload ? 'reschedule' : 'replace'
    case 'cycle':
      return to?.state === 'running' ? 'claim' : 'settle'
    case 'heartbeat':
      return 'release-undelivered'
    case 'settle_crashed':
      return 'rescue'
    case 'change':
      if (to === null) return 'discard'
      return from?.state === 'dead' ? 'replay' : 'cancel'
    case 'promote':
    case 'cancel':
    case 'prune':
      return statement
    default:
      throw new Error(`A job moved by a statement that the audit does not know: ${statement}.`)
  }
}

/** A worker's lease and a queue's setting. */
function othersOf({ relation, op, statement, old, new: now }: Entry, t: number): TimedEvent[] {
  const row = now ?? old
  if (relation === 'queue') {
    const { name: queue, paused } = row as { name: string; paused: boolean }
    // Its counts are rewritten all the time.
    return paused === (old?.['paused'] ?? false) ? [] : [{ type: 'setting', t, queue, paused }]
  }
  if (relation !== 'worker') return []
  const { id: worker, expires_at: expiresAt } = row as { id: string; expires_at: number }
  if (op === 'DELETE')
    return [{ type: 'lease', t, what: statement === 'worker' ? 'retired' : 'gone', worker, expiresAt: null }]
  const what = op === 'INSERT' ? 'registered' : 'renewed'
  return [{ type: 'lease', t, what, worker, expiresAt: earliest(expiresAt) }]
}

function senseless(job: string, what: string): Error {
  return new Error(`The audit makes no sense: job ${job} ${what}.`)
}
