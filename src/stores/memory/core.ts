/** The core of the contract in memory: enqueue, cycle, heartbeat. */
import type { WorkerId } from '../../job/ids.ts'
import type { NewJob } from '../../job/record.ts'
import { isWaiting } from '../../job/states.ts'
import {
  FLUSH_MEMORY_MS,
  MAX_ATTEMPT_RECORDS,
  MAX_LOG_LINES,
  type CancelNotice,
  type ClaimRequest,
  type CycleAnswer,
  type CycleRequest,
  type EnqueueAnswer,
  type Flush,
  type HeartbeatAnswer,
  type HeartbeatRequest,
  type Lease,
  type Report,
  type SettleAnswer,
  type SettleRequest,
} from '../store.ts'
import { badFlush } from '../flush.ts'
import { checkFlush } from '../write-check.ts'
import { refuseTransaction } from '../no-transactions.ts'
import { checkSettles } from '../settles.ts'
import { byRank, claimedJob, newEntry, remember, type Entry } from './entry.ts'
import type { MemoryState } from './state.ts'

// ── enqueue ──────────────────────────────────────────────────────────────────

export function enqueue(state: MemoryState, flush: Flush): readonly EnqueueAnswer[] {
  refuseTransaction('memory', flush)
  const remembered = state.flushes.get(flush.id)
  if (remembered !== undefined) return remembered.answers ?? flush.jobs.map(insertedAnswer)
  refuse(state, flush)
  const answers = flush.jobs.map((job) =>
    job.unique === null ? insert(state, job) : insertUnique(state, job),
  )
  forgetOldFlushes(state)
  const plain = answers.every((answer) => answer.outcome === 'inserted')
  state.flushes.set(flush.id, { at: state.now(), answers: plain ? null : answers })
  hintAbout(state, flush.jobs)
  return answers
}

/** Checks a flush before anything is written, because it happens as a whole or not at all. */
function refuse(state: MemoryState, flush: Flush): void {
  checkFlush('memory', flush)
  const known = flush.jobs.find((job) => state.shelves.jobs.has(job.id))
  if (known !== undefined) throw badFlush('memory', `a new job with the id ${known.id}, which exists already`)
}

function insertedAnswer(job: NewJob): EnqueueAnswer {
  return { id: job.id, outcome: 'inserted' }
}

function insert(state: MemoryState, job: NewJob): EnqueueAnswer {
  const now = state.now()
  const dueAt = state.dueAt(job.due, now)
  state.shelves.insert(newEntry(job, dueAt > now ? 'scheduled' : 'ready', now, dueAt))
  return insertedAnswer(job)
}

function insertUnique(state: MemoryState, job: NewJob): EnqueueAnswer {
  const { unique } = job
  if (unique === null) return insert(state, job)
  const holderId = state.keys.holderOf(unique.key, state.now())
  if (holderId === undefined) {
    state.keys.take(unique, job.id, state.now())
    return insert(state, job)
  }
  const holder = state.shelves.jobs.get(holderId)
  if (holder === undefined || !isWaiting(holder.state) || unique.onConflict === 'ignore') {
    return { id: holderId, outcome: 'duplicate' }
  }
  const dueAt = state.dueAt(job.due)
  if (unique.onConflict === 'reschedule') {
    state.reschedule(holder, dueAt)
    return { id: holderId, outcome: 'rescheduled' }
  }
  // The holder keeps its id and its creation time. Everything else is the new job's, without attempts.
  state.keys.take(unique, holderId, state.now())
  state.replace(holder, dueAt, { ...job, id: holderId })
  return { id: holderId, outcome: 'replaced' }
}

function forgetOldFlushes(state: MemoryState): void {
  const tooOld = state.now() - FLUSH_MEMORY_MS
  for (const [id, flush] of state.flushes) {
    if (flush.at >= tooOld) return
    state.flushes.delete(id)
  }
}

function hintAbout(state: MemoryState, jobs: readonly NewJob[]): void {
  const hinted = new Set<string>()
  for (const job of jobs) {
    if ('inMs' in job.due && job.due.inMs === 0) {
      if (hinted.has(job.queue)) continue
      hinted.add(job.queue)
      state.hint({ type: 'ready', queue: job.queue })
    } else {
      const entry = state.shelves.jobs.get(job.id)
      if (entry !== undefined) state.hintWaiting(entry)
    }
  }
}

// ── cycle ────────────────────────────────────────────────────────────────────

export function cycle(state: MemoryState, request: CycleRequest): CycleAnswer {
  checkSettles(request.settle)
  if (request.reports !== undefined) for (const one of request.reports) report(state, request.worker, one)
  const settled = request.settle.map((one) => settle(state, request.worker, one))
  const alive = state.leases.workers.has(request.worker)
  const leases = alive && request.claim !== null ? claim(state, request.worker, request.claim) : []
  return { alive, settled, leases }
}

function report(state: MemoryState, worker: WorkerId, { token, position, progress, log }: Report): void {
  const entry = state.leases.openAt(worker, token, position)
  if (entry === 'already' || entry === 'lost') return
  const before = entry.reported ?? { progress: null, log: [] }
  entry.reported = {
    progress: progress ?? before.progress,
    log: [...before.log, ...log].slice(-MAX_LOG_LINES),
  }
}

function settle(state: MemoryState, worker: WorkerId, request: SettleRequest): SettleAnswer {
  const entry = state.leases.openAt(worker, request.token, request.position)
  if (entry === 'already' || entry === 'lost') return entry
  const { record, keepRecords = MAX_ATTEMPT_RECORDS } = request
  if (record) remember(entry, record, Math.min(keepRecords, MAX_ATTEMPT_RECORDS))
  state.settle(entry, request.settlement, { worker, runMs: request.runMs })
  const ended = entry.state === 'completed' || entry.state === 'dead'
  if (request.forget === true && ended) state.shelves.forget(entry)
  return 'written'
}

function claim(state: MemoryState, worker: WorkerId, request: ClaimRequest): Lease[] {
  const shelf = state.shelves.queues.get(request.queue)
  if (shelf === undefined || shelf.paused) return []
  const plain: Entry[] = []
  let suspect: Entry | undefined
  while (plain.length + (suspect === undefined ? 0 : 1) < request.limit) {
    const nextPlain = shelf.ready.first()
    const nextSuspect = request.suspects && suspect === undefined ? shelf.suspects.first() : undefined
    if (nextSuspect !== undefined && (nextPlain === undefined || byRank(nextSuspect, nextPlain) < 0)) {
      suspect = nextSuspect
      shelf.suspects.takeFirst()
    } else if (nextPlain !== undefined) {
      plain.push(nextPlain)
      shelf.ready.takeFirst()
    } else {
      break
    }
  }
  const batches = [plain, suspect === undefined ? [] : [suspect]].filter((batch) => batch.length > 0)
  return batches.map((batch) => grant(state, worker, request.queue, batch))
}

function grant(state: MemoryState, worker: WorkerId, queue: string, batch: readonly Entry[]): Lease {
  const shelf = state.shelves.queue(queue)
  const { token, claimedAt } = state.leases.grant(worker, batch, state.now())
  for (const entry of batch) {
    entry.attempt++
    state.shelves.moveTakenToRunning(entry, shelf)
  }
  return { token, queue, claimedAt, jobs: batch.map(claimedJob) }
}

// ── heartbeat ─────────────────────────────────────────────────────

export function heartbeat(state: MemoryState, request: HeartbeatRequest): HeartbeatAnswer {
  const worker = state.leases.workers.get(request.worker)
  if (worker === undefined) return { alive: false, tokens: [], cancelled: [], paused: [] }
  worker.expiresAt = state.now() + worker.leaseMs
  const { nth = worker.nth, atOnce = worker.atOnce } = request
  if (nth >= worker.nth) {
    worker.nth = nth
    worker.atOnce = atOnce
  }
  for (const { token, position } of request.heard ?? []) {
    const entry = state.leases.openAt(request.worker, token, position)
    if (typeof entry === 'object' && entry.cancel !== null) entry.cancel = { ...entry.cancel, heard: true }
  }
  for (const token of request.undelivered) {
    const lease = state.leases.get(token)
    if (lease?.worker !== request.worker) continue
    for (const entry of state.leases.revoke(lease)) state.release(entry)
  }
  const leases = state.leases.of(request.worker)
  const cancelled = leases.flatMap((lease) =>
    lease.open.flatMap((entry, position): CancelNotice[] =>
      entry === null || entry.cancel === null || entry.cancel.heard
        ? []
        : [{ token: lease.token, position, reason: entry.cancel.reason }],
    ),
  )
  const paused = [...state.shelves.queues].filter(([, shelf]) => shelf.paused).map(([queue]) => queue)
  return { alive: true, tokens: leases.map((lease) => lease.token), cancelled, paused }
}
