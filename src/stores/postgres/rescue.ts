/** Rescue: takes the leases of dead workers away and decides what becomes of each job, in one transaction. */
import { crashOutcome, crashRecord } from '../../job/crash.ts'
import type { Token, WorkerId } from '../../job/ids.ts'
import type { Random } from '../../std/random.ts'
import type { RescueAnswer, RescuedJob } from '../store.ts'
import { packRecord, type PackedJob, type Past } from './bodies.ts'
import type { Executor } from './executor.ts'
import type { Statements } from './statements.ts'

interface OrphanRow {
  readonly token: Token
  readonly worker: WorkerId
  readonly queue: string
  readonly job: PackedJob
  readonly cancel: { readonly reason: string | null } | null
  readonly said: Past | null
  readonly claimed_at: number
  /** The time of the rescue. */
  readonly taken_at: number
}

export async function rescue(
  executor: Executor,
  statements: Statements,
  random: Random,
  limit: number,
): Promise<RescueAnswer> {
  return executor.transaction(async (tx) => {
    const orphans = await tx.query<OrphanRow>(statements.takeCrashed, [limit])
    const placed = orphans.map((orphan) => place(orphan, random))
    if (placed.length > 0)
      await tx.query(statements.placeOrphans, [JSON.stringify(placed.map(({ row }) => row))])
    const buried = await tx.query<{ id: WorkerId }>(statements.buryWorkers, [])
    return { workers: buried.map(({ id }) => id), jobs: placed.map(({ told }) => told) }
  })
}

function place(orphan: OrphanRow, random: Random): { row: object; told: RescuedJob } {
  const { token, worker, queue, job, cancel, said } = orphan
  const [, body, attempt = 1, before = 0] = job
  const [id, name, , , , , maxCrashes] = body
  const outcome = crashOutcome(
    { worker, attempt, crashes: before, maxCrashes, cancelled: cancel !== null },
    random,
  )
  const { to, error, crashes, delayMs } = outcome
  const reason = cancel === null ? null : cancel.reason
  const record = packRecord(crashRecord(error, worker, orphan.claimed_at, orphan.taken_at))
  const delay = Math.round(delayMs)
  const row = { id, token, queue, job, said, kind: to, delay, error, reason, crashes, record }
  return { row, told: { id, name, queue, worker, crashes, to, error } }
}
