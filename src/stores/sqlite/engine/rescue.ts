/** Rescue: takes the leases of lost workers back and decides what becomes of their jobs. */
import { crashOutcome, crashRecord, mayHaveRun } from '../../../job/crash.ts'
import type { WorkerId } from '../../../job/ids.ts'
import type { RescueAnswer, RescuedJob } from '../../store.ts'
import type { Engine } from './engine.ts'
import { OpenLease } from './leases.ts'
import type { LeaseRow, WorkerRow } from './rows.ts'
import { cancelled, remember } from './settle.ts'
import { releaseFrom } from './workers.ts'

/** With what `lead` has rescued since the last time. */
export function rescue(engine: Engine, limit: number): RescueAnswer {
  const earlier = engine.takeRescued()
  const now = rescueWhere(engine, limit, (worker) => isLost(engine, worker))
  return { workers: [...earlier.workers, ...now.workers], jobs: [...earlier.jobs, ...now.jobs] }
}

/** Only workers whose process is provably gone, so that a worker that was only cut off loses nothing. */
export function rescueGone(engine: Engine, limit: number): RescueAnswer {
  const workers = engine.db.all<WorkerRow>('allWorkers')
  if (!workers.some((worker) => isGone(engine, worker))) return { workers: [], jobs: [] }
  return rescueWhere(engine, limit, (worker) => isGone(engine, worker))
}

/** Leases without a worker count as lost. */
function rescueWhere(engine: Engine, limit: number, isLost: (worker: WorkerRow) => boolean): RescueAnswer {
  const workers = new Map(engine.db.all<WorkerRow>('allWorkers').map((worker) => [worker.id, worker]))
  const lost = new Set([...workers.values()].filter(isLost).map(({ id }) => id))
  const atOnce = new Map([...workers.values()].map((worker) => [worker.id, worker.at_once]))
  const jobs: RescuedJob[] = []
  for (const row of engine.db.all<LeaseRow>('allLeases')) {
    if (jobs.length >= limit) break
    if (workers.has(row.worker) && !lost.has(row.worker)) continue
    jobs.push(...takeBack(engine, row, atOnce))
  }
  for (const [id, left] of atOnce)
    if (lost.has(id) && left !== workers.get(id)?.at_once) engine.db.run('setAtOnce', left, id)
  // A worker goes only when no lease is left of it, so that a bounded rescue never leaves one behind.
  const gone = [...lost].filter((id) => engine.db.get('leasesOf', id) === undefined)
  for (const id of gone) engine.db.run('deleteWorker', id)
  return { workers: gone, jobs }
}

/** Whether a rescue would find anything. */
export function isRescueDue(engine: Engine): boolean {
  const workers = engine.db.all<WorkerRow>('allWorkers')
  const known = new Set(workers.map(({ id }) => id))
  return (
    engine.hasRescued ||
    workers.some((worker) => isLost(engine, worker)) ||
    engine.db.all<LeaseRow>('allLeases').some(({ worker }) => !known.has(worker))
  )
}

function isLost(engine: Engine, worker: WorkerRow): boolean {
  const hasExpired = worker.expires_at <= engine.now() && !engine.hasJumpedWithin(worker.lease_ms)
  return hasExpired || isGone(engine, worker)
}

export function isGone(engine: Engine, { process }: { readonly process: string | null }): boolean {
  return process !== null && engine.processes.isGone(process)
}

/** `atOnce`: how many jobs of each worker can have been running among those that were not taken yet. */
function takeBack(engine: Engine, row: LeaseRow, atOnce: Map<WorkerId, number | null>): RescuedJob[] {
  const lease = OpenLease.of(engine, row)
  const left = atOnce.get(row.worker) ?? null
  const open = lease.revoke()
  if (left !== null) atOnce.set(row.worker, Math.max(0, left - open.length))
  return open.map((position, before) => crashed(engine, lease, position, mayHaveRun(before, left)))
}

function crashed(engine: Engine, lease: OpenLease, position: number, mayRun: boolean): RescuedJob {
  const { worker, token, claimed_at: claimedAt } = lease.row
  const row = engine.jobAt(lease.seqs[position] ?? -1)
  const { seq, id, name, queue } = row
  const cancel = lease.cancels.get(position)
  const before = {
    worker,
    attempt: row.attempt + 1,
    crashes: row.crashes,
    maxCrashes: row.max_crashes,
    cancelled: cancel !== undefined,
    mayHaveRun: mayRun,
  }
  const { to, error, crashes, delayMs } = crashOutcome(before, engine.random)
  const record = crashRecord(error, worker, claimedAt, engine.now())
  if (record !== null) remember(engine, seq, record)
  if (error === null) releaseFrom(engine, lease, position)
  else {
    const due = to === 'scheduled' ? engine.dueAt({ inMs: delayMs }) : row.due
    const next = engine.comeBack(row, { due, crashes })
    if (to === 'cancelled') cancelled(engine, lease, seq, cancel?.reason ?? null)
    else engine.changePast(seq, { error })
    if (to === 'dead') {
      engine.freeKey(row)
      engine.finish(row, 'dead', { token })
    }
    if (to === 'scheduled') engine.putWaiting(next, 'scheduled')
  }
  return { id, name, queue, worker, crashes, to, error }
}
