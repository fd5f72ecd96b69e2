/**
 * The store inside this process: PostgreSQL as WebAssembly on a directory of its own, with the same SQL as on a server.
 * One process has it at a time, which changes two things. A worker of this process cannot be lost without the process,
 * so leases last as long as it does; and whatever is leased at the start was left by a process that is gone, so it is
 * rescued at once. There is no autovacuum either: the upkeep does it.
 */
import { systemClock } from '../../std/clock.ts'
import { systemRandom } from '../../std/random.ts'
import type { Store } from '../store.ts'
import type { Executor } from './executor.ts'
import { readNames, render, type Names } from './names.ts'
import { pgliteExecutor } from './pglite/pglite-executor.ts'
import { sqlStore } from './sql-store.ts'

export interface EmbeddedStoreOptions {
  /** Where the data lives; made if it is not there. Null keeps everything in memory. @default '.holdfast' */
  readonly directory?: string | null
  /** Told what takes a while at the start, in lines for people. @default nobody */
  readonly onProgress?: (line: string) => void
}

const TEN_YEARS_MS = 315_360_000_000
/** Bounded, because everything else waits meanwhile. */
const RESCUE_AT_ONCE = 1_000
const VACUUM_EVERY_MS = 60_000
/** Where rows come and go. */
const BUSY_TABLES = [
  'ready',
  'scheduled',
  'lease',
  'batch',
  'worker',
  'intake',
  'unique_key',
  'payload',
  'queue',
  'count_change',
] as const

export function embeddedStore(options: EmbeddedStoreOptions = {}): Store {
  const { directory = '.holdfast', onProgress } = options
  const names = readNames({})
  const executor = pgliteExecutor({ directory, ...(onProgress === undefined ? {} : { onProgress }) })
  const store = sqlStore({
    kind: 'embedded',
    executor,
    names,
    migrate: true,
    clock: systemClock,
    random: systemRandom,
  })
  let opening: Promise<void> | undefined
  let vacuumedMs = systemClock.monotonicMs()
  return {
    ...store,
    open: () => {
      opening ??= openAndRescue(store, executor, names).catch((error: unknown) => {
        opening = undefined
        throw error
      })
      return opening
    },
    register: (worker, _leaseMs, atOnce) => store.register(worker, TEN_YEARS_MS, atOnce),
    upkeep: {
      ...store.upkeep,
      prune: async (retention, limit) => {
        const answer = await store.upkeep.prune(retention, limit)
        if (systemClock.monotonicMs() - vacuumedMs >= VACUUM_EVERY_MS) {
          await vacuum(executor, names)
          vacuumedMs = systemClock.monotonicMs()
        }
        return answer
      },
    },
  }
}

async function openAndRescue(store: Store, executor: Executor, names: Names): Promise<void> {
  await store.open()
  await executor.script(render('update holdfast.worker set expires_at = 0', names))
  for (;;) {
    const { workers, jobs } = await store.upkeep.rescue(RESCUE_AT_ONCE)
    if (workers.length === 0 && jobs.length === 0) return
  }
}

/** One statement at a time: each is a transaction of its own, and others get their turn in between. */
async function vacuum(executor: Executor, names: Names): Promise<void> {
  for (const table of BUSY_TABLES) await executor.script(render(`vacuum holdfast.${table}`, names))
}
