/**
 * The in-memory store, for tests and development. Everything is lost when the process ends. It is also the model: small enough
 * to read in one sitting, and every other store must behave like it.
 */
import { HoldfastError } from '../../errors.ts'
import { having, readersFor, readOptions, whole } from '../../job/options.ts'
import { systemClock, type Clock } from '../../std/clock.ts'
import { systemRandom, type Random } from '../../std/random.ts'
import type { Store } from '../store.ts'
import { memoryAdmin } from './admin.ts'
import { cycle, enqueue, heartbeat } from './core.ts'
import { memoryNotes } from './notes.ts'
import { memorySchedules } from './schedules.ts'
import { MemoryState } from './state.ts'
import { memoryUpkeep, type Guard } from './upkeep.ts'

export interface MemoryStoreOptions {
  /** @default the system's clock */
  readonly clock?: Pick<Clock, 'now'>
  /** Spreads out the retries of jobs whose worker was lost. @default the system's randomness */
  readonly random?: Random
  /** Maximum number of jobs kept in each final state, regardless of the retention. @default 100,000 */
  readonly maxFinished?: number
}

const FIELDS = readersFor<MemoryStoreOptions>()({
  clock: having<Pick<Clock, 'now'>>('now'),
  random: having<Random>('float'),
  maxFinished: whole(0),
})

export function memoryStore(options: MemoryStoreOptions = {}): Store {
  const read = readOptions(options, 'memoryStore()', FIELDS)
  const { clock = systemClock, random = systemRandom, maxFinished = 100_000 } = read
  return storeOn(new MemoryState({ clock, random, maxFinished }))
}

/** For tests that watch each move: the store on a state that the caller made. */
export function storeOn(state: MemoryState): Store {
  let closed = false

  const step: Guard = async (body) => {
    if (closed) throw new HoldfastError('HF_CLOSED', 'The in-memory store is closed.')
    const answer = body()
    state.tellHints()
    return answer
  }

  return {
    kind: 'memory',
    open: () => step(() => undefined),
    close: async () => {
      closed = true
      state.listeners.clear()
    },
    enqueue: (flush) => step(() => enqueue(state, flush)),
    register: (worker, leaseMs, atOnce) =>
      step(() => {
        const expiresAt = state.now() + leaseMs
        const known = state.leases.workers.get(worker)
        if (known !== undefined) Object.assign(known, { leaseMs, expiresAt })
        else state.leases.workers.set(worker, { leaseMs, expiresAt, atOnce: atOnce ?? null, nth: 0 })
      }),
    retire: (worker) => step(() => void state.leases.workers.delete(worker)),
    cycle: (request) => step(() => cycle(state, request)),
    heartbeat: (request) => step(() => heartbeat(state, request)),
    subscribe: (listener) =>
      step(() => {
        const remove = state.listeners.add(listener)
        return async () => void remove()
      }),
    upkeep: memoryUpkeep(state, step),
    schedules: memorySchedules(state, step),
    notes: memoryNotes(state, step),
    admin: memoryAdmin(state, step),
  }
}
