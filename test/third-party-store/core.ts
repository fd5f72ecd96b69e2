/** The core: enqueue, cycle, heartbeat. */
import {
  checkJobs,
  checkSettles,
  FLUSH_MEMORY_MS,
  HoldfastError,
  isWaiting,
  MAX_BATCH,
  MAX_LOG_LINES,
  refuseTransaction,
  type ClaimRequest,
  type CycleAnswer,
  type CycleRequest,
  type EnqueueAnswer,
  type Flush,
  type HeartbeatAnswer,
  type HeartbeatRequest,
  type Lease,
  type NewJob,
  type Report,
  type SettleAnswer,
  type SettleRequest,
  type WorkerId,
} from 'holdfast/store'
import type { Book } from './book.ts'
import { addRecord, byRank, newRow, untried, type Row } from './rows.ts'

export const KIND = 'tiny'

export function enqueue(book: Book, flush: Flush): readonly EnqueueAnswer[] {
  refuseTransaction(KIND, flush)
  const { id, jobs } = flush
  const before = book.flushes.get(id)
  if (before !== undefined) return before.answers
  // Check everything first: a flush is written as a whole or not at all.
  checkJobs(jobs)
  const known = jobs.filter(
    ({ id: job }, place) => book.rows.has(job) || jobs.findIndex((one) => one.id === job) < place,
  )
  if (jobs.length > MAX_BATCH || known.length > 0)
    throw new HoldfastError('HF_STORE_CONTRACT', 'The flush is too large, or an id in it exists already.')
  const answers = jobs.map((job) => insert(book, job))
  for (const [old, { at }] of book.flushes) if (at < book.now() - FLUSH_MEMORY_MS) book.flushes.delete(old)
  book.flushes.set(id, { at: book.now(), answers })
  return answers
}

function insert(book: Book, job: NewJob): EnqueueAnswer {
  const { unique, queue } = job
  const dueAt = book.dueAt(job.due)
  const holderId = unique === null ? undefined : book.holderOf(unique.key)
  if (unique === null || holderId === undefined) {
    const row = newRow(job, book.now(), dueAt)
    book.rows.set(job.id, row)
    if (!book.queues.has(queue)) book.queues.set(queue, false)
    book.takeKey(row)
    book.move(row, row.state)
    return { id: job.id, outcome: 'inserted' }
  }
  const holder = book.rows.get(holderId)
  if (holder === undefined || !isWaiting(holder.state) || unique.onConflict === 'ignore')
    return { id: holderId, outcome: 'duplicate' }
  if (unique.onConflict === 'replace') {
    Object.assign(holder, untried(), { job: { ...job, id: holderId } })
    if (!book.queues.has(queue)) book.queues.set(queue, false)
    book.takeKey(holder)
  }
  book.wait(holder, dueAt)
  return { id: holderId, outcome: unique.onConflict === 'replace' ? 'replaced' : 'rescheduled' }
}

/** Reports, then settles, then claims. */
export function cycle(book: Book, { worker, settle, claim, reports = [] }: CycleRequest): CycleAnswer {
  checkSettles(settle)
  for (const one of reports) report(book, worker, one)
  const settled = settle.map((one) => settleOne(book, worker, one))
  const alive = book.workers.has(worker)
  return { alive, settled, leases: alive && claim !== null ? claimJobs(book, worker, claim) : [] }
}

function report(book: Book, worker: WorkerId, { progress, log, ...at }: Report): void {
  const row = book.openAt(worker, at)
  if (typeof row === 'string') return
  row.progress = progress ?? row.progress
  row.log = [...row.log, ...log].slice(-MAX_LOG_LINES)
}

function settleOne(book: Book, worker: WorkerId, request: SettleRequest): SettleAnswer {
  const { settlement, runMs, record, keepRecords, forget = false } = request
  const row = book.openAt(worker, request)
  if (typeof row === 'string') return row
  if (record) addRecord(row, record, keepRecords)
  book.settle(row, settlement, { worker, runMs })
  if (forget && (row.state === 'completed' || row.state === 'dead')) book.forget(row)
  return 'written'
}

/** The jobs of lowest rank: the plain ones in one lease, and at most one suspect in a lease of its own. */
function claimJobs(book: Book, worker: WorkerId, { queue, limit, suspects }: ClaimRequest): Lease[] {
  if (book.queues.get(queue) !== false) return []
  const chosen: Row[] = []
  const ready = [...book.rows.values()].filter(({ job, state }) => job.queue === queue && state === 'ready')
  let hasSuspect = !suspects
  for (const row of ready.sort(byRank)) {
    if (chosen.length === limit) break
    if (row.crashes > 0 && hasSuspect) continue
    hasSuspect ||= row.crashes > 0
    chosen.push(row)
  }
  const batches = [chosen.filter(({ crashes }) => crashes === 0), chosen.filter(({ crashes }) => crashes > 0)]
  return batches.filter(({ length }) => length > 0).map((rows) => book.grant(worker, queue, rows))
}

export function heartbeat(book: Book, request: HeartbeatRequest): HeartbeatAnswer {
  const { worker, undelivered, heard = [] } = request
  const known = book.workers.get(worker)
  if (known === undefined) return { alive: false, tokens: [], cancelled: [], paused: [] }
  known.expiresAt = book.now() + known.leaseMs
  const { nth = known.nth, atOnce = known.atOnce } = request
  if (nth >= known.nth) Object.assign(known, { nth, atOnce })
  for (const at of heard) {
    const row = book.openAt(worker, at)
    if (typeof row === 'object' && row.cancel !== null) row.cancel = { ...row.cancel, heard: true }
  }
  for (const lease of book.leasesOf(worker))
    if (undelivered.includes(lease.token)) for (const row of book.revoke(lease)) book.release(row)
  const leases = book.leasesOf(worker)
  return {
    alive: true,
    tokens: leases.map(({ token }) => token),
    cancelled: leases.flatMap(({ token, open }) =>
      open.flatMap((row, position) => {
        const cancel = row?.cancel ?? null
        return cancel === null || cancel.heard ? [] : [{ token, position, reason: cancel.reason }]
      }),
    ),
    paused: [...book.queues].filter(([, paused]) => paused).map(([queue]) => queue),
  }
}
