/**
 * Correct histories by the dozen: a few nodes that enqueue, claim, run, settle and beat at random against the reference
 * store, whose requests and answers get lost, and which die, freeze and come back; then all is healed, drained and stopped.
 * Upkeep runs on a node of its own that nothing happens to, so that every bound is kept.
 */
import type { Call, HistoryEvent, Reply, SettleCall, SettlementType } from '../history.ts'
import { Chance } from './random.ts'
import { QUEUES, RandomClients } from './random-clients.ts'
import { ReferenceStore } from './reference-store.ts'
import { LEASE_MS, type Unstamped } from './story.ts'

export interface ReferenceOptions {
  readonly seed: number
  /** About how many steps the faulty part takes; a step is one to three events. */
  readonly steps: number
  /** Probability that a request or an answer gets lost, a node dies … @default 0.02 */
  readonly faults?: number
}

interface Attempt {
  readonly settle: Omit<SettleCall, 'to'>
  readonly attempt: number
  running: boolean
}

interface Actor {
  readonly node: string
  up: boolean
  frozen: boolean
  worker: string
  registered: boolean
  sureUntil: number
  readonly attempts: Attempt[]
  /** Tokens of claims whose answer never came. */
  readonly undelivered: number[]
}

/** A call on its way: not executed yet, or executed and its answer on the way back. */
interface Flight {
  readonly op: number
  readonly actor: Actor | null
  readonly node: string
  readonly call: Call
  readonly sentAt: number
  reply: Reply | null
}

const SETTLEMENTS: readonly SettlementType[] = [
  'completed',
  'completed',
  'completed',
  'retry',
  'dead',
  'snooze',
  'release',
]
const SWEEP_MS = 100

export class Reference {
  readonly #chance: Chance
  readonly #steps: number
  readonly #faults: number
  readonly #store: ReferenceStore
  readonly #flights: Flight[] = []
  readonly #actors: Actor[] = ['w1', 'w2', 'w3'].map((node) => ({
    node,
    up: false,
    frozen: false,
    worker: '',
    registered: false,
    sureUntil: 0,
    attempts: [],
    undelivered: [],
  }))
  readonly #clients: RandomClients
  #buffer: HistoryEvent[] = []
  #t = 1_000
  #seq = 0
  #op = 0
  #made = 0
  #nextSweepAt = 0
  #healed = false

  constructor({ seed, steps, faults = 0.02 }: ReferenceOptions) {
    this.#chance = new Chance(seed)
    this.#clients = new RandomClients(this.#chance)
    this.#steps = steps
    this.#faults = faults
    this.#store = new ReferenceStore(
      (event) => this.#write(event),
      () => this.#t,
    )
  }

  *[Symbol.iterator](): Generator<HistoryEvent> {
    this.#write({ type: 'begin', version: 1, store: 'reference', moves: true })
    this.#write({ type: 'node', what: 'started', node: 'u', queues: [], slots: 0, upkeep: true })
    this.#write({ type: 'phase', phase: 'faulty' })
    for (let step = 0; step < this.#steps; step++) {
      this.#step()
      yield* this.#take()
    }
    this.#heal()
    for (let step = 0; !this.#isDrained(); step++) {
      if (step > 100_000) throw new Error('the reference does not come to an end')
      this.#step()
      yield* this.#take()
    }
    this.#stop()
    this.#write({ type: 'phase', phase: 'end' })
    this.#snapshot()
    yield* this.#take()
  }

  #take(): HistoryEvent[] {
    const events = this.#buffer
    this.#buffer = []
    return events
  }

  #write(event: Unstamped<HistoryEvent>): void {
    this.#buffer.push({ seq: this.#seq++, t: this.#t, ...event })
  }

  #step(): void {
    const healed = this.#healed
    this.#t += this.#chance.below(10)
    this.#sweep()
    // A call flies twice, there and back: fewer turns than this, and ever more would be under way.
    if (this.#flights.length > 0 && this.#chance.happens(this.#isIdle() ? 1 : 0.75)) {
      return this.#fly(this.#chance.below(this.#flights.length))
    }
    const actor = this.#chance.pick(this.#actors)
    if (!healed && this.#chance.happens(this.#faults / 10)) return this.#strike(actor)
    // Seldom enough that the workers keep up.
    if (!healed && this.#chance.happens(0.08)) return this.#send(this.#clients.next(), null)
    if (!actor.up) this.#start(actor)
    else if (!actor.frozen) this.#work(actor)
    else if (this.#chance.happens(0.03)) this.#freeze(actor, false)
  }

  /** Upkeep is never disturbed and always in time. */
  #sweep(): void {
    if (this.#t < this.#nextSweepAt) return
    this.#nextSweepAt = this.#t + this.#chance.below(SWEEP_MS)
    const kinds = this.#chance.happens(0.1)
      ? (['promote', 'rescue', 'prune'] as const)
      : (['promote', 'rescue'] as const)
    for (const kind of kinds) this.#atOnce({ kind }, 'u')
    // A pause that was still on its way when all was healed.
    if (this.#healed && this.#chance.happens(0.1)) this.#atOnce({ kind: 'resume', queue: 'r' }, 'c')
  }

  #atOnce(call: Call, node: string): void {
    const op = this.#op++
    this.#write({ type: 'invoke', op, node, call })
    this.#write({ type: 'answer', op, node, reply: this.#store.execute(call) })
  }

  // ── calls on their way ─────────────────────────────────────────────────────

  #send(call: Call, actor: Actor | null): void {
    const node = actor?.node ?? 'c'
    const op = this.#op++
    this.#write({ type: 'invoke', op, node, call })
    this.#flights.push({ op, actor, node, call, sentAt: this.#t, reply: null })
  }

  #fly(index: number): void {
    const flight = this.#flights[index]
    if (flight === undefined || flight.actor?.frozen === true) return
    const lost = !this.#healed && this.#chance.happens(this.#faults)
    if (flight.reply === null && !lost) {
      flight.reply = this.#store.execute(flight.call)
      return
    }
    this.#flights.splice(index, 1)
    const { op, node, reply } = flight
    if (lost) {
      this.#write({ type: 'fault', kind: reply === null ? 'request lost' : 'answer lost', node })
      this.#write({ type: 'unknown', op, node })
      this.#unanswered(flight)
    } else if (reply !== null) {
      this.#write({ type: 'answer', op, node, reply })
      if (flight.actor !== null) this.#answered(flight.actor, flight, reply)
    }
  }

  #unanswered({ actor, call, reply }: Flight): void {
    if (call.kind === 'enqueue') return this.#send(call, null)
    if (actor === null) return
    if (reply?.kind === 'cycle') actor.undelivered.push(...reply.leases.map((lease) => lease.token))
    if (call.kind === 'cycle' && call.settles.length > 0) this.#send({ ...call, claim: null }, actor)
    if (call.kind === 'register') actor.worker = ''
    if (call.kind === 'heartbeat' && call.worker === actor.worker) actor.undelivered.push(...call.undelivered)
  }

  #answered(actor: Actor, { call, sentAt }: Flight, reply: Reply): void {
    if ('worker' in call && call.worker !== actor.worker) return
    if (reply.kind === 'register' || (reply.kind === 'heartbeat' && reply.alive)) {
      actor.registered = true
      actor.sureUntil = sentAt + LEASE_MS
    } else if ((reply.kind === 'heartbeat' || reply.kind === 'cycle') && !reply.alive) {
      this.#forget(actor)
    } else if (reply.kind === 'cycle') {
      for (const { token, jobs } of reply.leases) {
        jobs.forEach(({ id, attempt }, position) => {
          actor.attempts.push({ settle: { token, position, job: id }, attempt, running: false })
        })
      }
    }
  }

  // ── nodes ──────────────────────────────────────────────────────────────────

  #start(actor: Actor): void {
    actor.up = true
    this.#write({
      type: 'node',
      what: 'started',
      node: actor.node,
      queues: QUEUES,
      slots: 100,
      upkeep: false,
    })
  }

  #forget(actor: Actor): void {
    actor.worker = ''
    actor.registered = false
    actor.attempts.length = 0
    actor.undelivered.length = 0
  }

  #strike(actor: Actor): void {
    if (!actor.up) return
    if (actor.frozen || this.#chance.happens(0.5)) return this.#freeze(actor, !actor.frozen)
    this.#write({ type: 'node', what: 'killed', node: actor.node })
    actor.up = false
    this.#forget(actor)
    for (let index = this.#flights.length - 1; index >= 0; index--) {
      const flight = this.#flights[index]
      if (flight?.actor !== actor) continue
      // What was sent may arrive after the sender is dead.
      if (flight.reply === null && this.#chance.happens(0.5)) this.#store.execute(flight.call)
      this.#flights.splice(index, 1)
      this.#write({ type: 'unknown', op: flight.op, node: actor.node })
    }
  }

  #freeze(actor: Actor, frozen: boolean): void {
    actor.frozen = frozen
    this.#write({ type: 'node', what: frozen ? 'frozen' : 'thawed', node: actor.node })
  }

  #work(actor: Actor): void {
    if (actor.worker === '') {
      actor.worker = `${actor.node}-${this.#made++}`
      return this.#send({ kind: 'register', worker: actor.worker, leaseMs: LEASE_MS }, actor)
    }
    if (!actor.registered) return
    if (this.#chance.happens(0.25)) {
      return this.#send(
        { kind: 'heartbeat', worker: actor.worker, undelivered: actor.undelivered.splice(0) },
        actor,
      )
    }
    const attempt = actor.attempts[0]
    if (attempt === undefined || this.#chance.happens(0.2)) {
      const claim = { queue: this.#chance.pick(QUEUES), limit: 1 + this.#chance.below(4), suspects: true }
      return this.#send({ kind: 'cycle', worker: actor.worker, settles: [], claim }, actor)
    }
    this.#attempt(actor, attempt)
  }

  #attempt(actor: Actor, attempt: Attempt): void {
    const { settle } = attempt
    if (!attempt.running && this.#t < actor.sureUntil) {
      attempt.running = true
      const payload = this.#store.jobs.get(settle.job)?.spec.payload
      return this.#run(actor, attempt, 'start', payload)
    }
    if (attempt.running) this.#run(actor, attempt, 'end')
    actor.attempts.shift()
    const to = !attempt.running ? 'release' : this.#healed ? 'completed' : this.#chance.pick(SETTLEMENTS)
    this.#send({ kind: 'cycle', worker: actor.worker, settles: [{ ...settle, to }], claim: null }, actor)
  }

  #run({ node, worker }: Actor, { settle, attempt }: Attempt, what: 'start' | 'end', payload?: string): void {
    const { job, token } = settle
    // A zombie's job may be gone, and with it what it would have seen.
    const seen = payload === undefined ? {} : { payload }
    this.#write({ type: 'run', what, node, worker, job, token, attempt, ...seen })
  }

  // ── the end ────────────────────────────────────────────────────────────────

  #heal(): void {
    for (const actor of this.#actors) {
      if (actor.frozen) this.#freeze(actor, false)
      if (!actor.up) this.#start(actor)
    }
    this.#atOnce({ kind: 'resume', queue: 'r' }, 'c')
    this.#write({ type: 'phase', phase: 'healed' })
    this.#healed = true
  }

  #isDrained(): boolean {
    return this.#flights.length === 0 && this.#isIdle()
  }

  /** Healed, and nothing is left to do but to wait for answers. */
  #isIdle(): boolean {
    if (!this.#healed || this.#actors.some((actor) => actor.attempts.length > 0)) return false
    for (const { state } of this.#store.jobs.values()) {
      if (state === 'scheduled' || state === 'ready' || state === 'running') return false
    }
    return true
  }

  #stop(): void {
    for (const { node, worker } of this.#actors) {
      this.#write({ type: 'stop', what: 'begin', node, graceMs: 100 })
      if (worker !== '') this.#atOnce({ kind: 'retire', worker }, node)
      this.#write({ type: 'stop', what: 'end', node })
      this.#write({ type: 'node', what: 'stopped', node })
    }
  }

  #snapshot(): void {
    const counters: Record<string, Record<string, number>> = {}
    const jobs = [...this.#store.jobs.values()].map(
      ({ id, spec, state, attempt, crashes, token, worker }) => {
        const counts = (counters[spec.queue] ??= {})
        counts[state] = (counts[state] ?? 0) + 1
        const running = state === 'running'
        return {
          id,
          queue: spec.queue,
          state,
          attempt,
          crashes,
          token: running ? token : null,
          worker: running ? worker : null,
        }
      },
    )
    this.#write({ type: 'snapshot', jobs, counters })
  }
}
