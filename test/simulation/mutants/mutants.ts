/**
 * Bugs that others had, and near misses of our own, each as a small change to the sources. A simulation that does not
 * notice them would not notice them in us either. `find` must stand in the file exactly once: a mutant that no longer
 * fits its source is an error, not a pass.
 */
import { HAND_OVER_FROM_SEED, SCHEDULE_FROM_SEED } from '../plan.ts'

/** A bug, and where to plant it. */
export interface Planted extends Edit {
  readonly name: string
  /** Whose bug it was, or why we might make it. */
  readonly from: string
  /** What else has to change for it. */
  readonly and?: Edit
}

export interface Mutant extends Planted {
  /** The first seed whose runs have what it breaks. @default 1 */
  readonly fromSeed?: number
}

export interface Edit {
  readonly file: string
  readonly find: string
  readonly replace: string
}

const LEASES = 'src/stores/memory/leases.ts'
const STATE = 'src/stores/memory/state.ts'
const CORE = 'src/stores/memory/core.ts'
const SHELVES = 'src/stores/memory/shelves.ts'
const KEYS = 'src/stores/memory/unique-keys.ts'
const UPKEEP = 'src/stores/memory/upkeep.ts'
const ADMIN = 'src/stores/memory/admin.ts'
const SESSION = 'src/worker/session.ts'
const WORKER = 'src/worker/worker.ts'
const PLAN = 'src/worker/plan.ts'
const UNDELIVERED = 'src/worker/undelivered.ts'
const SCHEDULES = 'src/stores/memory/schedules.ts'
const DUE = 'src/scheduler/due.ts'
const OFFERS = 'src/worker/offers.ts'

export const MUTANTS: readonly Mutant[] = [
  // ── the fence ──────────────────────────────────────────────────────────────
  {
    name: 'no fence',
    from: 'Celery #7918: a zombie wakes up and commits',
    file: LEASES,
    find: '    this.#leases.delete(lease.token)\n    this.#revoked.add(lease.token)\n',
    replace: '',
  },
  {
    name: 'settle is not idempotent',
    from: 'failures.md 32: a repeated settle acts twice',
    file: LEASES,
    find: '    lease.open[entry.position] = null\n    entry.lease = null\n    if (--lease.left === 0) this.#leases.delete(lease.token)',
    replace: '    if (--lease.left === 0) this.#leases.delete(lease.token)',
  },
  {
    name: 'a count decides that a lease is finished',
    from: 'failures.md 32: a client\'s "that was the last one"',
    file: CORE,
    find: "  if (entry === 'already' || entry === 'lost') return entry\n  const { record,",
    replace:
      "  const counted = state.leases.get(request.token)\n  if (entry === 'already' && counted !== undefined && --counted.left === 0) state.leases.revoke(counted)\n  if (entry === 'already' || entry === 'lost') return entry\n  const { record,",
  },
  {
    name: 'a rescued worker goes on claiming',
    from: 'failures.md 31: a zombie claims a lease that no rescue ever finds',
    file: CORE,
    find: 'const leases = alive && request.claim !== null',
    replace: 'const leases = request.claim !== null',
    // Behind two doors: the store refuses the claim, and a worker that is not sure of its lease asks before it claims.
    and: {
      file: SESSION,
      find: '    while (!this.isSureAt(this.#now()) && !this.#stopped) await this.#renew()\n',
      replace: '',
    },
  },
  {
    name: 'tokens are used again',
    from: 'a token made from something that can go back',
    file: LEASES,
    find: 'const token = ++this.#lastToken as Token',
    replace: 'const token = ((++this.#lastToken % 97) + 1) as Token',
  },
  // ── rescue ─────────────────────────────────────────────────────────────────
  {
    name: 'rescue by age',
    from: 'Oban Lifeline, hexpm #1825: live jobs run twice',
    file: LEASES,
    find: 'return worker === undefined || worker.expiresAt <= nowMs',
    replace: 'return worker === undefined || lease.claimedAt + 10_000 <= nowMs',
  },
  {
    name: 'rescue trusts what it read before',
    from: 'River #1302: a slow rescuer overwrites a job that has finished meanwhile',
    file: UPKEEP,
    find: 'for (const lease of state.leases.orphaned(now)) {',
    replace:
      'const remembered = state as unknown as { seen?: ReturnType<typeof state.leases.orphaned> }\n  const before = remembered.seen ?? []\n  remembered.seen = state.leases.orphaned(now).map((one) => ({ ...one, open: [...one.open] }))\n  for (const lease of before) {',
  },
  {
    name: 'nobody rescues',
    from: 'graphile-worker #222: held for hours',
    file: 'src/maintenance/rescuer.ts',
    find: 'if (leader.seenForMs < leaseMs)',
    replace: 'if (leader.seenForMs < leaseMs * 1e6)',
  },
  {
    name: 'leases of missing workers are not found',
    from: 'failures.md 31: rescue takes expired workers only',
    file: LEASES,
    find: 'return worker === undefined || worker.expiresAt <= nowMs',
    replace: 'return worker !== undefined && worker.expiresAt <= nowMs',
  },
  {
    name: 'a rescued job keeps nothing of its crash',
    from: 'failures.md 19: a poison job is not counted',
    file: STATE,
    find: '    entry.crashes = crashes\n',
    replace: '',
  },
  // ── attempts and outcomes ──────────────────────────────────────────────────
  {
    name: 'a release burns the attempt',
    from: 'Celery #7339: shutdown costs an attempt',
    file: STATE,
    find: "cancelled', { reason: entry.cancel.reason })\n    entry.attempt--\n    this.shelves.take(entry)",
    replace: "cancelled', { reason: entry.cancel.reason })\n    this.shelves.take(entry)",
  },
  {
    name: 'a snooze burns the attempt',
    from: 'BullMQ: moveToDelayed counts',
    file: STATE,
    find: "      case 'snooze':\n        entry.attempt--\n",
    replace: "      case 'snooze':\n",
  },
  {
    name: 'a retry is written as completed',
    from: 'an outcome mapped to the wrong state',
    file: STATE,
    find: "      case 'retry':\n        return this.schedule(entry, settlement.delayMs, settlement.error)",
    replace: "      case 'retry':\n        return this.finish(entry, 'completed', {})",
  },
  {
    name: 'a settle that failed is not repeated',
    from: 'failures.md 6: the job stays running for ever',
    file: 'src/worker/settling.ts',
    find: '    if (left.length > 0) this.#waiting.unshift(...left)\n',
    replace: '    void left\n',
  },
  // ── enqueue ────────────────────────────────────────────────────────────────
  {
    name: 'an enqueue is repeated with new ids',
    from: 'failures.md 7: the answer is lost and the enqueue is repeated',
    file: 'src/core/store-client.ts',
    find: '      store.enqueue(flush, withinMs)\n',
    replace:
      '      store.enqueue({ id: this.#ids.flush(), jobs: jobs.map((job) => ({ ...job, id: this.#ids.job() })) }, withinMs)\n    void flush\n',
  },
  {
    name: 'a repeated flush is forgotten',
    from: 'failures.md 7: insert without a memory',
    file: CORE,
    find: '  if (remembered !== undefined) return remembered.answers ?? flush.jobs.map(insertedAnswer)\n  refuse(state, flush)\n',
    replace: '  void remembered\n  void refuse\n',
  },
  {
    name: 'an acked enqueue is dropped',
    from: 'kombu: an un-acked write',
    file: CORE,
    find: '  return insertedAnswer(job)\n}\n\nfunction insertUnique',
    replace:
      "  const lost = state.shelves.jobs.get(job.id)\n  if (lost !== undefined && lost.state === 'scheduled' && lost.dueAt % 7 < 1) {\n    state.shelves.scheduled.delete(lost)\n    state.shelves.jobs.delete(job.id)\n  }\n  return insertedAnswer(job)\n}\n\nfunction insertUnique",
  },
  {
    name: 'the payload is changed on the way',
    from: 'failures.md 16: JSON that is not what was given',
    file: 'src/worker/execute.ts',
    find: 'JSON.parse(job.payload)',
    replace: 'JSON.parse(job.payload.replace(\'"deaf":true\', \'"deaf":false\'))',
  },
  // ── unique keys ────────────────────────────────────────────────────────────
  {
    name: 'a unique key is freed too early',
    from: 'a key freed at the claim',
    file: KEYS,
    find: "unique.hold.while === 'ready' ? isWaiting(entry.state) : !isFinal(entry.state)",
    replace: 'isWaiting(entry.state)',
  },
  {
    name: 'a finished job keeps its unique key',
    from: 'Oban #424: the key stays taken by a dead job',
    file: KEYS,
    find: "unique.hold.while === 'ready' ? isWaiting(entry.state) : !isFinal(entry.state)",
    replace: 'true',
  },
  {
    name: 'a unique key is not asked for',
    from: 'check and insert in two steps',
    file: CORE,
    find: 'const holderId = state.keys.holderOf(unique.key, state.now())',
    replace:
      'const holderId = state.now() % 3 < 1 ? undefined : state.keys.holderOf(unique.key, state.now())',
  },
  // ── pause and cancel ───────────────────────────────────────────────────────
  {
    name: 'pause is ignored by workers that came after it',
    from: 'BullMQ #4729: pause is lost after a reconnect',
    file: CORE,
    find: 'if (shelf === undefined || shelf.paused) return []',
    replace: 'if (shelf === undefined || (shelf.paused && worker.charCodeAt(35) % 2 === 0)) return []',
  },
  {
    name: 'a cancelled job comes back',
    from: 'cancel is forgotten when the attempt fails',
    file: STATE,
    find: 'if (entry.cancel !== null && comesBack(settlement))',
    replace: "if (entry.cancel !== null && comesBack(settlement) && settlement.type !== 'retry')",
  },
  {
    name: 'cancel leaves a waiting job where it is',
    from: 'a cancel that only marks',
    file: ADMIN,
    find: "    state.finish(entry, 'cancelled', { reason })\n    return 'cancelled'",
    replace: "    entry.cancel = { reason }\n    return 'cancelled'",
  },
  // ── order ──────────────────────────────────────────────────────────────────
  {
    name: 'priorities are ignored',
    from: 'rank without the head start',
    file: 'src/stores/memory/entry.ts',
    find: 'export const byRank = (a: Entry, b: Entry): number => rank(a) - rank(b) || compareIds(a, b)',
    replace: 'export const byRank = (a: Entry, b: Entry): number => a.dueAt - b.dueAt || compareIds(a, b)',
  },
  {
    name: 'a job vanishes from its shelf',
    from: 'Sidekiq: popped and not pushed',
    file: SHELVES,
    find: '    entry.state = to\n    this.#shelve(entry)\n    this.#keys',
    replace:
      "    entry.state = to\n    if (from === 'running' && to === 'ready') this.queue(entry.job.queue).counts.ready++\n    else this.#shelve(entry)\n    this.#keys",
  },
  {
    name: 'counters drift',
    from: 'failures.md S15: a path that forgets to count',
    file: SHELVES,
    find: '    this.queue(entry.job.queue).counts[state]--\n    this.#gone(entry)',
    replace: '    this.#gone(entry)',
  },
  // ── life of a worker ───────────────────────────────────────────────────────
  {
    name: 'an undelivered lease is released while its answer travels',
    from: "postgres.md: release only what is older than the claim's deadline, and seen twice",
    file: UNDELIVERED,
    find: 'this.#provenMs = 2 * callTimeoutMs',
    replace: 'void callTimeoutMs\n    this.#provenMs = -1',
    and: {
      file: SESSION,
      find: '    this.#undelivered.note(answer.tokens, this.#isKnown, sentMs)\n',
      replace:
        '    this.#undelivered.note(answer.tokens, this.#isKnown, sentMs)\n    if (this.#undelivered.proven(this.#isKnown, sentMs).length > 0) this.#bell.ring()\n',
    },
  },
  {
    name: 'undelivered leases are never released',
    from: 'a claim whose reply was lost is held for ever',
    file: UNDELIVERED,
    find: 'this.#provenMs = 2 * callTimeoutMs',
    replace: 'void callTimeoutMs\n    this.#provenMs = Infinity',
  },
  {
    name: 'claims without an answer are not counted',
    from: 'a late claim stands before jobs that were started: their crash is not counted (seed 141, 15 minutes)',
    file: UNDELIVERED,
    find: 'return this.#lostClaims.reduce((sum, { jobs }) => sum + jobs, 0)',
    replace: 'return 0',
  },
  {
    name: 'the lease is counted from the answer',
    from: "failures.md 5: the worker's deadline must count from when the renewal was sent, less a margin",
    file: SESSION,
    find: 'this.#sureUntilMs = sentMs + leaseMs - Math.min(leaseMs / 5, 2_000)',
    replace: 'void sentMs\n    this.#sureUntilMs = this.#parts.core.clock.monotonicMs() + leaseMs',
  },
  {
    name: 'the lease is not looked at before a start',
    from: 'Celery #7918: what was claimed before a freeze is started after it',
    file: SESSION,
    find: '    return nowMs < this.#sureUntilMs\n',
    replace: '    return true\n',
  },
  {
    name: 'silently dead after an outage',
    from: 'BullMQ #4585, Celery #8030: the loop ends with the first error',
    file: PLAN,
    find: '  state.retryAtMs = Math.max(state.retryAtMs, begunMs + jittered(state.backoffMs, chance()))\n',
    replace: '  state.retryAtMs = Infinity\n  void [begunMs, chance]\n',
  },
  {
    name: 'an empty answer is believed for ever',
    from: 'a lost wake-up without a poll behind it',
    file: PLAN,
    find: '  for (const queue of state.queues) revive(state, queue)\n',
    replace: '  void state\n',
    and: { file: PLAN, find: 'if (queue.dry && !polls) continue', replace: 'if (queue.dry) continue' },
  },
  {
    name: 'stop forgets what it holds',
    from: 'langfuse #16966: SIGTERM holds jobs',
    file: WORKER,
    find: "    for (const attempt of attempts) this.#conclude(attempt, { type: 'interrupted' })\n",
    replace: '',
  },
  {
    name: 'stop leaves what still runs',
    from: 'Celery #7339: SIGTERM loses jobs',
    file: WORKER,
    find: '    for (const attempt of this.#open()) this.#attempts.giveUp(attempt)\n',
    replace: '',
  },
  {
    name: 'a lost lease goes unnoticed',
    from: 'a worker that does not look at what it is told of itself',
    file: SESSION,
    find: '    if (!answer.alive) this.#die(worker)\n    // Leases',
    replace: '    // Leases',
    and: { file: SESSION, find: '    if (!answer.alive) return this.#die(worker)\n', replace: '' },
  },
  // ── the planner and the holder of attempts ─────────────────────────────────
  {
    name: 'a claim that failed is taken for one under way',
    from: 'a flag that is not reset on the way of an error: the worker never claims again',
    file: PLAN,
    find: '  if (claim !== null) state.isClaiming = false\n',
    replace: '  if (claim !== null && state.retryAtMs < state.answeredMs) state.isClaiming = false\n',
  },
  {
    name: 'the plan of a stopping worker claims',
    from: 'a stop that goes on claiming never ends, or ends with jobs in its hands',
    file: PLAN,
    find: 'if (!work.claims || state.isClaiming',
    replace: 'if (state.isClaiming',
    and: {
      file: WORKER,
      find: "    if (this.#phase === 'running') this.#starts.start()\n    else this.#giveBack(this.#backlog.takeAll())\n",
      replace: '    this.#starts.start()\n',
    },
  },
  {
    name: 'a settle that was held back is forgotten',
    from: 'ends of a lease that another call settles are kept apart, and nobody fetches them',
    file: 'src/worker/settling.ts',
    find: '    if (held.length > 0) this.#waiting.unshift(...held)\n',
    replace: '',
  },

  // ── schedules ──────────────────────────────────────────────────────────────
  {
    name: 'a tick is fired again',
    from: 'Oban #1488: a stale leader fires cron twice',
    fromSeed: SCHEDULE_FROM_SEED,
    file: SCHEDULES,
    find: "        if (isFired(schedule, tick, state.now())) return 'already'\n",
    replace: '',
  },
  {
    name: 'ticks are left out after an outage',
    from: 'BullMQ #3272: schedules stop silently',
    fromSeed: SCHEDULE_FROM_SEED,
    file: DUE,
    find: "  if (catchUp === 'all') return ticks.slice(-catchUpLimit)\n",
    replace: '',
  },
  // ── hand-overs ─────────────────────────────────────────────────────────────
  {
    name: 'a lease of an offer that is over is run',
    from: 'the next claim has released it already, so the job starts twice',
    file: OFFERS,
    find: 'if (hint.nth !== newest?.nth ||',
    replace: 'if (newest === undefined ||',
    fromSeed: HAND_OVER_FROM_SEED,
  },
]
