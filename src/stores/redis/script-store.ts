/**
 * The contract of `store.ts` in Lua, over any executor. Each method is one script on a shard, and the work itself is
 * done by the files of `lua/`: read those to know what happens.
 */
import type { Clock } from '../../std/clock.ts'
import type { Random } from '../../std/random.ts'
import { refuseTransaction } from '../no-transactions.ts'
import type { Store } from '../store.ts'
import { redisAdmin } from './admin.ts'
import { enqueue } from './enqueue.ts'
import type { Executor } from './executor.ts'
import { Senders } from './senders.ts'
import type { Layout } from './layout.ts'
import { DEFAULT_BUDGET } from './listing.ts'
import { redisNotes } from './notes.ts'
import type { Run } from './run.ts'
import { redisSchedules } from './schedules.ts'
import type { Scripts } from './scripts.ts'
import { redisUpkeep } from './upkeep.ts'
import type { WakeUps } from './wake-ups.ts'

export interface ScriptStoreParts {
  readonly executor: Executor
  readonly scripts: Scripts
  readonly layout: (run: Run) => Layout
  readonly wakeUps: WakeUps
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly random: Random
  /** Maximum number of jobs that one call of a list or bulk change looks at. @default DEFAULT_BUDGET */
  readonly budget?: number
  /** Refuses a server that cannot be used. */
  readonly check: () => Promise<void>
}

export function scriptStore(parts: ScriptStoreParts): Store {
  const { executor, scripts, wakeUps, clock, random } = parts
  const run: Run = async <Answer>(...[shard, name, args, withinMs]: Parameters<Run>) =>
    (await executor.script(scripts.get(name), shard.keys, args, withinMs)) as Answer
  const refuseWhenClosed = (): void => executor.refuseWhenClosed()
  const { shards, workerCalls, fire, drain } = parts.layout(run)
  const senders = new Senders(clock, random)
  return {
    kind: 'redis',
    open: () => parts.check(),
    async close() {
      await Promise.all([wakeUps.close(), executor.close()])
    },
    async enqueue(flush, withinMs) {
      refuseWhenClosed()
      refuseTransaction('redis', flush)
      return enqueue({ run, shards, senders }, flush, withinMs)
    },
    register: (worker, leaseMs, atOnce) => workerCalls.register(worker, leaseMs, atOnce),
    retire: (worker) => workerCalls.retire(worker),
    cycle: (request, withinMs) => workerCalls.cycle(request, withinMs),
    heartbeat: (request) => workerCalls.heartbeat(request),
    subscribe: (listener) => wakeUps.subscribe(listener),
    upkeep: redisUpkeep(run, shards, drain, random),
    schedules: redisSchedules(run, shards, fire),
    notes: redisNotes(run, shards),
    admin: redisAdmin({ run, shards, refuseWhenClosed, budget: parts.budget ?? DEFAULT_BUDGET }),
  }
}
