/**
 * Tells small histories by hand. The low words (`invoke`, `move` …) write one event each; the others say what a correct
 * store does on one call, with invoke, moves and answer. Whoever wants a wrong history leaves one out or writes his own.
 */
import type {
  By,
  Call,
  EnqueuedJob,
  HistoryEvent,
  MoveEvent,
  Reply,
  SettlementType,
  SnapshotJob,
  State,
} from '../history.ts'

export type Unstamped<Event> = Event extends HistoryEvent ? Omit<Event, 'seq' | 't'> : never
type MoveFacts = Omit<MoveEvent, 'seq' | 't' | 'type'>

/** How a job stands in the story, so that a move only has to say what changes. */
type Standing = Omit<MoveFacts, 'from' | 'by' | 'settlement' | 'payload'> & { readonly position: number }

export const LEASE_MS = 1_000

export class Story {
  readonly events: HistoryEvent[] = []
  readonly jobs = new Map<string, Standing>()
  t = 0
  #op = 0
  #token = 0

  constructor({ moves = true }: { readonly moves?: boolean } = {}) {
    this.write({ type: 'begin', version: 1, store: 'story', moves })
  }

  get moves(): boolean {
    const [begin] = this.events
    return begin?.type === 'begin' && begin.moves
  }

  // ── low words ──────────────────────────────────────────────────────────────

  write(event: Unstamped<HistoryEvent>): this {
    this.events.push({ seq: this.events.length, t: this.t, ...event })
    return this
  }

  wait(ms: number): this {
    this.t += ms
    return this
  }

  invoke(call: Call, node = 'n1'): number {
    const op = this.#op++
    this.write({ type: 'invoke', op, node, call })
    return op
  }

  answer(op: number, reply: Reply, node = 'n1'): this {
    return this.write({ type: 'answer', op, node, reply })
  }

  unknown(op: number, node = 'n1'): this {
    return this.write({ type: 'unknown', op, node })
  }

  failed(op: number, node = 'n1'): this {
    return this.write({ type: 'failed', op, node, error: 'refused' })
  }

  /** The job moves from where it stands, unless told otherwise. */
  move(job: string, by: By, to: State | null, facts: Partial<MoveFacts> = {}): this {
    const before = this.jobs.get(job) ?? born(job, this.t)
    const { position, to: from, ...standing } = before
    const lease = by === 'claim' || before.to === 'running' ? {} : { token: null, worker: null }
    const move: MoveFacts = {
      ...standing,
      from: this.jobs.has(job) ? from : null,
      ...lease,
      ...facts,
      job,
      by,
      to,
    }
    const { settlement: _settlement, payload: _payload, by: _by, from: _from, ...after } = move
    if (to === null) this.jobs.delete(job)
    else this.jobs.set(job, { ...after, position })
    return this.moves ? this.write({ type: 'move', ...move }) : this
  }

  // ── what a correct store does ──────────────────────────────────────────────

  enqueue(id: string, spec: Partial<EnqueuedJob> = {}, node = 'n1'): this {
    const op = this.invoke(flush([enqueued(id, spec)], `flush-${id}`), node)
    this.birth(id, spec)
    return this.answer(op, { kind: 'enqueue', jobs: [{ id, outcome: 'inserted' }] }, node)
  }

  birth(id: string, spec: Partial<EnqueuedJob> = {}): this {
    const { queue, payload, due, headStartMs, unique } = enqueued(id, spec)
    const dueAt = 'inMs' in due ? this.t + due.inMs : due.atMs
    return this.move(id, 'enqueue', dueAt > this.t ? 'scheduled' : 'ready', {
      queue,
      dueAt,
      rank: dueAt - headStartMs,
      payload,
      unique: unique === null ? null : { key: unique.key, hold: unique.hold, held: true },
    })
  }

  register(worker: string, node = 'n1'): this {
    return this.call({ kind: 'register', worker, leaseMs: LEASE_MS }, { kind: 'register' }, node)
  }

  heartbeat(worker: string, node = 'n1'): this {
    const reply: Reply = { kind: 'heartbeat', alive: true, tokens: [] }
    return this.call({ kind: 'heartbeat', worker, undelivered: [] }, reply, node)
  }

  /** A call that moves nothing. */
  call(call: Call, reply: Reply, node = 'n1'): this {
    return this.answer(this.invoke(call, node), reply, node)
  }

  claim(worker: string, ids: readonly string[], node = 'n1'): number {
    const op = this.invoke(claimCall(worker), node)
    const token = this.grant(worker, ids)
    this.answer(op, this.leaseReply(token, ids), node)
    return token
  }

  /** The store's part of a claim. */
  grant(worker: string, ids: readonly string[], token = ++this.#token): number {
    this.#token = Math.max(this.#token, token)
    ids.forEach((id, position) => {
      const standing = this.jobs.get(id) ?? born(id, this.t)
      const facts = { token, worker, attempt: standing.attempt + 1, unique: keyAfter(standing, 'running') }
      this.move(id, 'claim', 'running', facts)
      const after = this.jobs.get(id)
      if (after !== undefined) this.jobs.set(id, { ...after, position })
    })
    return token
  }

  leaseReply(token: number, ids: readonly string[]): Reply {
    const jobs = ids.map((id) => {
      const { attempt, crashes } = this.jobs.get(id) ?? born(id, this.t)
      return { id, attempt, crashes }
    })
    return { kind: 'cycle', alive: true, settled: [], leases: [{ token, jobs }] }
  }

  settle(id: string, to: SettlementType, node = 'n1'): this {
    const call = this.settleCall(id, to)
    const op = this.invoke(call, node)
    this.writeSettle(id, to)
    return this.answer(op, settled('written'), node)
  }

  settleCall(id: string, to: SettlementType): Call {
    const { worker, token, position } = this.jobs.get(id) ?? born(id, this.t)
    return {
      kind: 'cycle',
      worker: worker ?? '',
      settles: [{ token: token ?? 0, position, job: id, to }],
      claim: null,
    }
  }

  /** The store's part of a settle. */
  writeSettle(id: string, settlement: SettlementType): this {
    const standing = this.jobs.get(id) ?? born(id, this.t)
    const state =
      settlement === 'retry' || settlement === 'snooze'
        ? 'scheduled'
        : settlement === 'release'
          ? 'ready'
          : settlement
    const handedBack = settlement === 'snooze' || settlement === 'release' ? 1 : 0
    const attempt = standing.attempt - handedBack
    return this.move(id, 'settle', state, { settlement, attempt, unique: keyAfter(standing, state) })
  }

  rescue(ids: readonly string[], node = 'n2'): this {
    const op = this.invoke({ kind: 'rescue' }, node)
    for (const id of ids) {
      const { attempt, crashes } = this.jobs.get(id) ?? born(id, this.t)
      const due = { dueAt: this.t, rank: this.t }
      this.move(id, 'rescue', 'scheduled', { attempt: attempt - 1, crashes: crashes + 1, ...due })
    }
    return this.answer(
      op,
      { kind: 'rescue', workers: [], jobs: ids.map((id) => ({ id, to: 'scheduled' as const })) },
      node,
    )
  }

  promote(id: string, node = 'n2'): this {
    const op = this.invoke({ kind: 'promote' }, node)
    this.move(id, 'promote', 'ready')
    return this.answer(op, { kind: 'promote', promoted: 1 }, node)
  }

  run(id: string, what: 'start' | 'end', facts: { payload?: string; node?: string } = {}): this {
    const { worker, token, attempt } = this.jobs.get(id) ?? born(id, this.t)
    return this.write({
      type: 'run',
      what,
      node: facts.node ?? 'n1',
      worker: worker ?? '',
      job: id,
      token: token ?? 0,
      attempt,
      ...(what === 'start' ? { payload: facts.payload ?? `{"of":"${id}"}` } : {}),
    })
  }

  setting(queue: string, paused: boolean): this {
    return this.moves ? this.write({ type: 'setting', queue, paused }) : this
  }

  pause(queue: string): this {
    const op = this.invoke({ kind: 'pause', queue })
    this.setting(queue, true)
    return this.answer(op, { kind: 'pause' })
  }

  started(node: string, { upkeep = false, queues = ['q'], slots = 5 } = {}): this {
    return this.write({ type: 'node', what: 'started', node, queues, slots, upkeep })
  }

  /** Only the phase, then all jobs as they stand, with counters that are right. */
  end(): this {
    this.write({ type: 'phase', phase: 'end' })
    return this.snapshot()
  }

  snapshot(): this {
    const jobs: SnapshotJob[] = [...this.jobs].map(([id, standing]) => {
      const { queue, to, attempt, crashes, token, worker } = standing
      const running = to === 'running'
      const lease = { token: running ? token : null, worker: running ? worker : null }
      return { id, queue, state: to ?? 'cancelled', attempt, crashes, ...lease }
    })
    const counters: Record<string, Partial<Record<State, number>>> = {}
    for (const { queue, state } of jobs) {
      const counts = (counters[queue] ??= {})
      counts[state] = (counts[state] ?? 0) + 1
    }
    return this.write({ type: 'snapshot', jobs, counters })
  }
}

export function enqueued(id: string, spec: Partial<EnqueuedJob> = {}): EnqueuedJob {
  return {
    id,
    name: 'job',
    queue: 'q',
    priority: 5,
    headStartMs: 0,
    payload: `{"of":"${id}"}`,
    due: { inMs: 0 },
    unique: null,
    ...spec,
  }
}

export function flush(jobs: readonly EnqueuedJob[], id: string): Call {
  return { kind: 'enqueue', flush: id, jobs }
}

export function claimCall(worker: string, queue = 'q'): Call {
  return { kind: 'cycle', worker, settles: [], claim: { queue, limit: 10, suspects: true } }
}

export function settled(...answers: ('written' | 'already' | 'lost')[]): Reply {
  return { kind: 'cycle', alive: true, settled: answers, leases: [] }
}

function born(job: string, t: number): Standing {
  return {
    job,
    to: null,
    queue: 'q',
    token: null,
    worker: null,
    attempt: 0,
    crashes: 0,
    rank: t,
    dueAt: t,
    unique: null,
    position: 0,
  }
}

/** Whether a correct store counts the job as its key's holder in a state. */
function keyAfter({ unique }: Standing, state: State): MoveEvent['unique'] {
  if (unique === null || typeof unique.hold === 'number') return unique
  const waiting = state === 'scheduled' || state === 'blocked' || state === 'ready'
  const keeps = unique.hold === 'ready' ? waiting : waiting || state === 'running'
  return { ...unique, held: unique.held && keeps }
}
