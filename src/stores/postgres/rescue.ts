/** Rescue: takes the leases of lost workers back and decides what becomes of each job, in one transaction. */
import { crashOutcome, crashRecord, mayHaveRun, type CrashOutcome } from '../../job/crash.ts'
import type { JobId, Token, WorkerId } from '../../job/ids.ts'
import type { Random } from '../../std/random.ts'
import type { RescueAnswer, RescuedJob } from '../store.ts'
import type { Executor } from './executor.ts'
import { packRecord } from './packed-jobs.ts'
import type { Statements } from './statements.ts'

interface CrashedRow {
  readonly token: Token
  readonly worker: WorkerId
  readonly queue: string
  readonly id: JobId
  readonly name: string
  readonly attempt: number
  readonly crashes: number
  readonly max_crashes: number
  readonly cancel: { readonly reason: string | null } | null
  readonly claimed_at: number
  /** The time of the rescue. */
  readonly taken_at: number
  /** Number of the worker's open jobs that can have been running; null: all of them. */
  readonly at_once: number | null
}

/** Outcomes of the open positions of one lease, in order, as holdfast.settle_crashed takes them. */
interface CrashedLease {
  readonly token: Token
  readonly kinds: string[]
  readonly delays: number[]
  readonly details: (string | null)[]
  readonly records: (string | null)[]
  readonly crashes: number[]
}

export async function rescue(
  executor: Executor,
  statements: Statements,
  random: Random,
  limit: number,
): Promise<RescueAnswer> {
  return executor.transaction(async (tx) => {
    const rows = await tx.query<CrashedRow>(statements.lockCrashed, [limit])
    const leases = new Map<Token, CrashedLease>()
    const open = new Map<WorkerId, number>()
    const jobs = rows.map((row) => {
      const openBefore = open.get(row.worker) ?? 0
      open.set(row.worker, openBefore + 1)
      return place(row, mayHaveRun(openBefore, row.at_once), leases, random)
    })
    if (jobs.length > 0) await tx.query(statements.settleCrashed, [JSON.stringify([...leases.values()])])
    const workers = await tx.query<{ id: WorkerId }>(statements.removeWorkers, [])
    return { workers: workers.map(({ id }) => id), jobs }
  })
}

/** As holdfast.settle names them: a suspect that waits hands its attempt back, like a snoozed job. */
const KINDS: Readonly<Record<CrashOutcome['to'], string>> = {
  ready: 'release',
  scheduled: 'snooze',
  dead: 'dead',
  cancelled: 'cancelled',
}

function place(row: CrashedRow, ran: boolean, leases: Map<Token, CrashedLease>, random: Random): RescuedJob {
  const { token, worker, queue, id, name, attempt, cancel } = row
  const { to, error, crashes, delayMs } = crashOutcome(
    {
      worker,
      attempt,
      crashes: row.crashes,
      maxCrashes: row.max_crashes,
      cancelled: cancel !== null,
      mayHaveRun: ran,
    },
    random,
  )
  let lease = leases.get(token)
  if (lease === undefined)
    leases.set(token, (lease = { token, kinds: [], delays: [], details: [], records: [], crashes: [] }))
  const record = crashRecord(error, worker, row.claimed_at, row.taken_at)
  lease.kinds.push(KINDS[to])
  lease.delays.push(Math.round(delayMs))
  lease.details.push(detailOf(to, error, cancel))
  lease.records.push(record === null ? null : packRecord(record))
  lease.crashes.push(crashes)
  return { id, name, queue, worker, crashes, to, error }
}

/** The reason of a cancel, otherwise the error. */
function detailOf(
  to: CrashOutcome['to'],
  error: CrashOutcome['error'],
  cancel: CrashedRow['cancel'],
): string | null {
  if (to === 'cancelled') return cancel?.reason ?? null
  return error === null ? null : JSON.stringify(error)
}
