/** Workers: registration, heartbeats, reports of running jobs. */
import type { Token, WorkerId } from '../../../job/ids.ts'
import { MAX_LOG_LINES, type HeartbeatAnswer, type HeartbeatRequest, type Report } from '../../store.ts'
import { checkCount, checkDuration } from '../../write-check.ts'
import type { Engine } from './engine.ts'
import { OpenLease } from './leases.ts'
import type { LeaseRow, WorkerRow } from './rows.ts'
import { cancelled, release } from './settle.ts'

export function register(engine: Engine, worker: WorkerId, leaseMs: number, atOnce: number | null): void {
  checkDuration('The lease of a worker', leaseMs)
  checkCount('The slots of a worker', atOnce)
  const expiresAt = engine.now() + Math.round(leaseMs)
  engine.db.run('register', worker, Math.round(leaseMs), expiresAt, atOnce, engine.processes.own)
}

/** Leases that it still holds can be rescued at once. */
export function retire(engine: Engine, worker: WorkerId): void {
  engine.db.run('deleteWorker', worker)
}

/** Nothing but the lease of the worker itself. */
export function renew(engine: Engine, worker: WorkerId): boolean {
  return engine.db.run('renewLease', engine.now(), worker) === 1
}

export function heartbeat(engine: Engine, request: HeartbeatRequest): HeartbeatAnswer {
  const { worker, undelivered, heard = [] } = request
  const known = engine.db.get<WorkerRow>('worker', worker)
  if (known === undefined) return { alive: false, tokens: [], cancelled: [], paused: [] }
  renewAndCount(engine, known, request)
  for (const { token, position } of heard)
    if (engine.db.get<LeaseRow>('lease', token)?.worker === worker)
      engine.db.run('hearCancel', token, position)
  for (const token of undelivered) releaseUndelivered(engine, worker, token)
  const leases = engine.db.all<LeaseRow>('leasesOf', worker)
  return {
    alive: true,
    tokens: leases.map(({ token }) => token),
    cancelled: leases.flatMap((row) => noticesOf(engine, row)),
    paused: engine.db.all<{ name: string }>('pausedQueues').map(({ name }) => name),
  }
}

/** A heartbeat that arrives after a later one is out of date. */
function renewAndCount(engine: Engine, known: WorkerRow, request: HeartbeatRequest): void {
  const { nth = known.nth, atOnce = known.at_once } = request
  checkCount('The number of a heartbeat', nth)
  checkCount('The slots of a worker', atOnce)
  const isLate = nth < known.nth
  const expiresAt = engine.now() + known.lease_ms
  engine.db.runOne('renew', expiresAt, isLate ? known.at_once : atOnce, isLate ? known.nth : nth, known.id)
}

function releaseUndelivered(engine: Engine, worker: WorkerId, token: Token): void {
  const lease = OpenLease.at(engine, token)
  if (lease?.row.worker !== worker) return
  for (const position of lease.revoke()) releaseFrom(engine, lease, position)
}

/** Ready in its old place, or cancelled if that was requested. */
export function releaseFrom(engine: Engine, lease: OpenLease, position: number): void {
  const seq = lease.seqs[position]
  if (seq === undefined) throw new Error(`Lease ${lease.row.token} has no position ${position}.`)
  const cancel = lease.cancels.get(position)
  if (cancel === undefined) release(engine, seq)
  else cancelled(engine, lease, seq, cancel.reason)
}

function noticesOf(engine: Engine, { token }: LeaseRow): HeartbeatAnswer['cancelled'] {
  const rows = engine.db.all<{ position: number; reason: string | null; heard: number }>('cancelsOf', token)
  return rows.flatMap(({ position, reason, heard }) => (heard === 1 ? [] : [{ token, position, reason }]))
}

/** Ignores a report whose position is not open under the worker's token. */
export function keepReports(engine: Engine, worker: WorkerId, reports: readonly Report[]): void {
  for (const { token, position, progress, log } of reports) {
    const lease = OpenLease.at(engine, token)
    const seq = lease?.row.worker === worker ? lease.openAt(position) : null
    if (typeof seq !== 'number') continue
    const before = engine.past(seq)
    const lines = [...before.log, ...log].slice(-MAX_LOG_LINES)
    engine.changePast(seq, { progress: progress ?? before.progress, log: lines })
  }
}
