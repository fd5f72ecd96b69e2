/**
 * The contract of `store.ts` in SQL. Each method is one statement, or one transaction, and the work
 * itself is done by the functions that `schema/` installs: read those to know what happens.
 */
import type { Clock } from '../../std/clock.ts'
import type { Random } from '../../std/random.ts'
import { brokenAnswer } from '../broken-answer.ts'
import { warnOfNotice } from '../on-notice.ts'
import type { HeartbeatAnswer, Store } from '../store.ts'
import { sqlAdmin } from './admin.ts'
import { Background } from './background.ts'
import { Counts } from './counts.ts'
import { cycle } from './cycle.ts'
import { enqueue } from './enqueue.ts'
import type { Executor } from './executor.ts'
import { Lanes } from './lanes.ts'
import { intArray } from './literals.ts'
import { migrate } from './migrate.ts'
import type { Names } from './names.ts'
import { sqlNotes } from './notes.ts'
import { sqlSchedules } from './schedules.ts'
import { statementsFor } from './statements.ts'
import { commit } from './tx/commit.ts'
import { enqueueIn } from './tx/transactions.ts'
import { sqlUpkeep } from './upkeep.ts'
import { WakeUps } from './wake-ups.ts'

export interface SqlStoreParts {
  readonly executor: Executor
  readonly names: Names
  /** Whether missing migrations are applied at open, or refused. */
  readonly migrate: boolean
  readonly clock: Clock
  readonly random: Random
  /** Where claims begin to read. @default at the marks, with regular sweeps */
  readonly lanes?: Lanes
  /** Called with failures that no caller receives. @default a process warning */
  readonly onNotice?: (line: string) => void
}

interface HeartbeatRow {
  readonly alive: boolean
  readonly tokens: HeartbeatAnswer['tokens'] | null
  readonly cancels: readonly (readonly [token: number, position: number, reason: string | null])[] | null
  readonly paused: readonly string[] | null
}

export function sqlStore(parts: SqlStoreParts): Store {
  const { executor, names, clock, random, onNotice = warnOfNotice } = parts
  const statements = statementsFor(names)
  const lanes = parts.lanes ?? new Lanes(clock)
  const background = new Background(clock, onNotice)
  const counts = new Counts(executor, statements, clock, background)
  const admin = sqlAdmin(executor, statements)
  const wakeUps = new WakeUps(executor, statements, lanes)
  const isSubscribed = (): boolean => wakeUps.isSubscribed
  const cycleParts = { db: executor, statements, lanes, clock, background, isSubscribed }
  return {
    kind: 'postgres',
    async open() {
      await executor.open()
      await migrate(executor, names, { apply: parts.migrate, clock, random })
    },
    close: () => executor.close(),
    enqueue: (flush, withinMs) => {
      counts.flushed()
      const { tx } = flush
      return tx === undefined
        ? enqueue(executor, statements, flush, withinMs)
        : enqueueIn(tx, statements, flush)
    },
    async register(worker, leaseMs, atOnce) {
      await executor.query(statements.register, [worker, Math.round(leaseMs), atOnce ?? null])
    },
    async retire(worker) {
      await executor.query(statements.retire, [worker])
    },
    cycle: (request) => cycle(cycleParts, request),
    async heartbeat({ worker, undelivered, heard = [], atOnce = null, nth = null }) {
      const released = undelivered.length === 0 ? null : intArray(undelivered)
      const places = heard.map(({ token, position }) => [token, position])
      const values = [worker, released, places.length === 0 ? null : JSON.stringify(places), atOnce, nth]
      const [row] = await executor.query<HeartbeatRow>(statements.heartbeat, values)
      return readHeartbeat(row)
    },
    subscribe: (listener) => wakeUps.subscribe(listener),
    upkeep: sqlUpkeep({ executor, statements, counts, random, clock }),
    schedules: sqlSchedules(executor, statements),
    notes: sqlNotes(executor, statements),
    admin: {
      ...admin,
      queues: async () => {
        const queues = await admin.queues()
        counts.read()
        return queues
      },
    },
    transactions: { commit: (request, write) => commit({ executor, statements }, request, write) },
  }
}

function readHeartbeat(row: HeartbeatRow | undefined): HeartbeatAnswer {
  if (row === undefined) throw brokenAnswer('postgres', 'a heartbeat returned no row')
  const { alive, tokens, cancels, paused } = row
  type Notice = HeartbeatAnswer['cancelled'][number]
  const cancelled = (cancels ?? []).map(
    ([token, position, reason]) => ({ token, position, reason }) as Notice,
  )
  return { alive, tokens: tokens ?? [], cancelled, paused: paused ?? [] }
}
