/** A store as small as it can be and still be right: it executes calls and tells of its moves. For the checker's own tests. */
import { Heap } from '../heap.ts'
import type {
  By,
  Call,
  EnqueuedJob,
  EnqueueReply,
  HistoryEvent,
  LeaseReply,
  MoveEvent,
  Reply,
  SettleCall,
  State,
} from '../history.ts'
import type { Unstamped } from './story.ts'

interface Entry {
  spec: EnqueuedJob
  readonly id: string
  state: State
  attempt: number
  crashes: number
  dueAt: number
  rank: number
  token: number
  worker: string
  cancelled: boolean
}

interface Key {
  readonly id: string
  readonly untilMs: number
}

type CallOf<Kind extends Call['kind']> = Extract<Call, { kind: Kind }>

export const MAX_CRASHES = 2

export class ReferenceStore {
  readonly jobs = new Map<string, Entry>()
  readonly #write: (event: Unstamped<HistoryEvent>) => void
  readonly #now: () => number
  readonly #ready = new Map<string, Heap<{ readonly entry: Entry; readonly rank: number }>>()
  readonly #paused = new Set<string>()
  readonly #workers = new Map<string, { readonly leaseMs: number; expiresAt: number }>()
  /** Token → its jobs by position; null once settled. */
  readonly #leases = new Map<number, { readonly worker: string; readonly open: (Entry | null)[] }>()
  readonly #revoked = new Set<number>()
  readonly #keys = new Map<string, Key>()
  readonly #flushes = new Map<string, readonly EnqueueReply[]>()
  readonly #ticks = new Map<string, number>()
  #token = 0

  constructor(write: (event: Unstamped<HistoryEvent>) => void, now: () => number) {
    this.#write = write
    this.#now = now
  }

  execute(call: Call): Reply {
    switch (call.kind) {
      case 'enqueue':
        return { kind: 'enqueue', jobs: this.#enqueue(call) }
      case 'fire':
        return { kind: 'fire', outcome: this.#fire(call) }
      case 'register':
        return this.#register(call)
      case 'retire':
        this.#workers.delete(call.worker)
        this.#write({ type: 'lease', what: 'retired', worker: call.worker, expiresAt: null })
        return { kind: 'retire' }
      case 'cycle':
        return this.#cycle(call)
      case 'heartbeat':
        return this.#heartbeat(call)
      case 'promote':
        return { kind: 'promote', promoted: this.#promote() }
      case 'rescue':
        return this.#rescue()
      case 'prune':
        return {
          kind: 'prune',
          pruned: this.#forget('prune', ({ state }) => state === 'completed' || state === 'cancelled'),
        }
      case 'pause':
      case 'resume':
        if (call.kind === 'pause') this.#paused.add(call.queue)
        else this.#paused.delete(call.queue)
        this.#write({ type: 'setting', queue: call.queue, paused: call.kind === 'pause' })
        return { kind: call.kind }
      case 'cancel':
        return { kind: 'cancel', outcome: this.#cancel(call.job) }
      case 'change':
        return { kind: 'change', changed: this.#change(call) }
      case 'other':
        return { kind: 'other' }
    }
  }

  #enqueue({ flush, jobs }: CallOf<'enqueue'>): readonly EnqueueReply[] {
    const remembered = this.#flushes.get(flush)
    if (remembered !== undefined) return remembered
    const replies = jobs.map((spec) => this.#insert(spec))
    this.#flushes.set(flush, replies)
    return replies
  }

  #fire({ schedule, tick, job }: CallOf<'fire'>): 'fired' | 'already' {
    if (tick <= (this.#ticks.get(schedule) ?? -Infinity)) return 'already'
    this.#ticks.set(schedule, tick)
    this.#insert(job)
    return 'fired'
  }

  #insert(spec: EnqueuedJob): EnqueueReply {
    const now = this.#now()
    const dueAt = 'inMs' in spec.due ? now + spec.due.inMs : Math.max(now, spec.due.atMs)
    const rank = dueAt - spec.headStartMs
    const key = spec.unique === null ? undefined : this.#keys.get(spec.unique.key)
    if (spec.unique !== null && key !== undefined && key.untilMs > now) {
      const holder = this.jobs.get(key.id)
      const waits = holder !== undefined && isWaiting(holder.state)
      if (!waits || spec.unique.onConflict === 'ignore') return { id: key.id, outcome: 'duplicate' }
      holder.dueAt = dueAt
      if (spec.unique.onConflict === 'reschedule') {
        holder.rank = dueAt - holder.spec.headStartMs
        this.#move(holder, 'reschedule', dueAt > now ? 'scheduled' : 'ready')
        return { id: key.id, outcome: 'rescheduled' }
      }
      holder.rank = rank
      holder.spec = { ...spec, queue: holder.spec.queue }
      this.#takeKey(holder)
      holder.attempt = 0
      holder.crashes = 0
      this.#move(holder, 'replace', dueAt > now ? 'scheduled' : 'ready', { payload: spec.payload })
      return { id: key.id, outcome: 'replaced' }
    }
    const entry: Entry = {
      spec,
      id: spec.id,
      state: 'ready',
      attempt: 0,
      crashes: 0,
      dueAt,
      rank,
      token: 0,
      worker: '',
      cancelled: false,
    }
    this.#takeKey(entry)
    this.#move(entry, 'enqueue', dueAt > now ? 'scheduled' : 'ready', { from: null, payload: spec.payload })
    return { id: spec.id, outcome: 'inserted' }
  }

  #takeKey({ id, spec: { unique } }: Entry): void {
    if (unique === null) return
    const untilMs = typeof unique.hold === 'number' ? this.#now() + unique.hold : Infinity
    this.#keys.set(unique.key, { id, untilMs })
  }

  #register({ worker, leaseMs }: CallOf<'register'>): Reply {
    const expiresAt = this.#now() + leaseMs
    this.#workers.set(worker, { leaseMs, expiresAt })
    this.#write({ type: 'lease', what: 'registered', worker, expiresAt })
    return { kind: 'register' }
  }

  #heartbeat({ worker: id, undelivered }: CallOf<'heartbeat'>): Reply {
    const worker = this.#workers.get(id)
    if (worker === undefined) return { kind: 'heartbeat', alive: false, tokens: [] }
    worker.expiresAt = this.#now() + worker.leaseMs
    this.#write({ type: 'lease', what: 'renewed', worker: id, expiresAt: worker.expiresAt })
    for (const token of undelivered) {
      for (const entry of this.#revoke(token)) {
        entry.attempt--
        this.#move(entry, 'release-undelivered', entry.cancelled ? 'cancelled' : 'ready')
      }
    }
    const tokens = [...this.#leases].filter(([, lease]) => lease.worker === id).map(([token]) => token)
    return { kind: 'heartbeat', alive: true, tokens }
  }

  #cycle({ worker, settles, claim }: CallOf<'cycle'>): Reply {
    const settled = settles.map((settle) => this.#settle(worker, settle))
    const alive = this.#workers.has(worker)
    const leases: LeaseReply[] = []
    if (alive && claim !== null && !this.#paused.has(claim.queue)) {
      const taken = this.#take(claim.queue, claim.limit)
      const plain = taken.filter((entry) => entry.crashes === 0)
      // Suspects come in a lease of their own.
      for (const batch of [plain, ...taken.filter((entry) => entry.crashes > 0).map((entry) => [entry])]) {
        if (batch.length > 0) leases.push(this.#grant(worker, batch))
      }
    }
    return { kind: 'cycle', alive, settled, leases }
  }

  #take(queue: string, limit: number): Entry[] {
    const line = this.#ready.get(queue)
    const taken: Entry[] = []
    while (line !== undefined && taken.length < limit) {
      const first = line.pop()
      if (first === undefined) break
      // What left the queue, or moved in it, since it was put here.
      const { entry, rank } = first
      if (
        entry.state === 'ready' &&
        entry.rank === rank &&
        entry.spec.queue === queue &&
        !taken.includes(entry)
      )
        taken.push(entry)
    }
    return taken
  }

  #grant(worker: string, entries: readonly Entry[]): LeaseReply {
    const token = ++this.#token
    this.#leases.set(token, { worker, open: [...entries] })
    for (const entry of entries) {
      entry.attempt++
      entry.token = token
      entry.worker = worker
      this.#move(entry, 'claim', 'running')
    }
    return { token, jobs: entries.map(({ id, attempt, crashes }) => ({ id, attempt, crashes })) }
  }

  #settle(worker: string, { token, position, to }: SettleCall): 'written' | 'already' | 'lost' {
    const lease = this.#leases.get(token)
    if (lease === undefined) return this.#revoked.has(token) ? 'lost' : 'already'
    if (lease.worker !== worker) return 'lost'
    const entry = lease.open[position]
    if (entry === undefined) return 'lost'
    if (entry === null) return 'already'
    lease.open[position] = null
    if (lease.open.every((one) => one === null)) this.#leases.delete(token)
    const comesBack = to === 'retry' || to === 'snooze' || to === 'release'
    if (comesBack && entry.cancelled) {
      this.#move(entry, 'settle', 'cancelled', { settlement: to })
      return 'written'
    }
    if (to === 'snooze' || to === 'release') entry.attempt--
    if (to === 'retry' || to === 'snooze') this.#delay(entry, 100)
    const state = to === 'release' ? 'ready' : comesBack ? 'scheduled' : to
    this.#move(entry, 'settle', state, { settlement: to })
    return 'written'
  }

  #delay(entry: Entry, ms: number): void {
    entry.dueAt = this.#now() + ms
    entry.rank = entry.dueAt - entry.spec.headStartMs
  }

  #promote(): number {
    const due = [...this.jobs.values()].filter((job) => job.state === 'scheduled' && job.dueAt <= this.#now())
    for (const entry of due) this.#move(entry, 'promote', 'ready')
    return due.length
  }

  #rescue(): Reply {
    const now = this.#now()
    const rescued: { id: string; to: 'scheduled' | 'dead' | 'cancelled' }[] = []
    for (const [token, lease] of this.#leases) {
      if ((this.#workers.get(lease.worker)?.expiresAt ?? 0) > now) continue
      for (const entry of this.#revoke(token)) {
        entry.attempt--
        entry.crashes++
        const to = entry.cancelled ? 'cancelled' : entry.crashes > MAX_CRASHES ? 'dead' : 'scheduled'
        if (to === 'scheduled') this.#delay(entry, 50)
        this.#move(entry, 'rescue', to)
        rescued.push({ id: entry.id, to })
      }
    }
    const workers = [...this.#workers].filter(([, worker]) => worker.expiresAt <= now).map(([id]) => id)
    for (const worker of workers) {
      this.#workers.delete(worker)
      this.#write({ type: 'lease', what: 'gone', worker, expiresAt: null })
    }
    return { kind: 'rescue', workers, jobs: rescued }
  }

  #revoke(token: number): Entry[] {
    const lease = this.#leases.get(token)
    this.#leases.delete(token)
    this.#revoked.add(token)
    return lease?.open.filter((entry) => entry !== null) ?? []
  }

  #cancel(id: string): 'cancelled' | 'requested' | 'final' | 'missing' {
    const entry = this.jobs.get(id)
    if (entry === undefined) return 'missing'
    if (isWaiting(entry.state)) {
      this.#move(entry, 'cancel', 'cancelled')
      return 'cancelled'
    }
    if (entry.state !== 'running') return 'final'
    entry.cancelled = true
    return 'requested'
  }

  #change({ action, jobs }: CallOf<'change'>): number {
    const chosen = (entry: Entry): boolean => jobs === null || jobs.includes(entry.id)
    if (action === 'discard')
      return this.#forget('discard', (entry) => entry.state === 'dead' && chosen(entry))
    let changed = 0
    for (const entry of this.jobs.values()) {
      if (entry.state !== 'dead' || !chosen(entry) || action !== 'replay') continue
      const { unique } = entry.spec
      const key = unique === null ? undefined : this.#keys.get(unique.key)
      if (key !== undefined && key.id !== entry.id && key.untilMs > this.#now()) continue
      this.#takeKey(entry)
      Object.assign(entry, { attempt: 0, crashes: 0, cancelled: false })
      this.#delay(entry, 0)
      this.#move(entry, 'replay', 'ready')
      changed++
    }
    return changed
  }

  #forget(by: By, wanted: (entry: Entry) => boolean): number {
    const forgotten = [...this.jobs.values()].filter(wanted)
    for (const entry of forgotten) this.#move(entry, by, null)
    return forgotten.length
  }

  /** The only place where a job changes its state, frees its key and tells of it. */
  #move(entry: Entry, by: By, to: State | null, facts: Partial<MoveEvent> = {}): void {
    const from = 'from' in facts ? null : entry.state
    const { unique } = entry.spec
    if (to === null) this.jobs.delete(entry.id)
    else {
      entry.state = to
      this.jobs.set(entry.id, entry)
    }
    if (unique !== null && typeof unique.hold !== 'number' && this.#keys.get(unique.key)?.id === entry.id) {
      const keeps = to !== null && (isWaiting(to) || (to === 'running' && unique.hold === 'unfinished'))
      if (!keeps) this.#keys.delete(unique.key)
    }
    if (to === 'ready') this.#line(entry.spec.queue).push({ entry, rank: entry.rank })
    const key = unique === null ? undefined : this.#keys.get(unique.key)
    const held = key?.id === entry.id && key.untilMs > this.#now()
    const leased = from === 'running' || to === 'running'
    const { id: job, attempt, crashes, rank, dueAt } = entry
    this.#write({
      type: 'move',
      job,
      from,
      to,
      by,
      queue: entry.spec.queue,
      token: leased ? entry.token : null,
      worker: leased ? entry.worker : null,
      attempt,
      crashes,
      rank,
      dueAt,
      unique: unique === null ? null : { key: unique.key, hold: unique.hold, held },
      ...(facts.settlement === undefined ? {} : { settlement: facts.settlement }),
      ...(facts.payload === undefined ? {} : { payload: facts.payload }),
    })
  }

  #line(queue: string): Heap<{ readonly entry: Entry; readonly rank: number }> {
    let line = this.#ready.get(queue)
    if (line === undefined) {
      line = new Heap((a, b) => a.rank < b.rank || (a.rank === b.rank && a.entry.id < b.entry.id))
      this.#ready.set(queue, line)
    }
    return line
  }
}

function isWaiting(state: State): boolean {
  return state === 'scheduled' || state === 'blocked' || state === 'ready'
}
