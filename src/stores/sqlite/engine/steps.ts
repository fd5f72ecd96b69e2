/** Every step by its name, as it travels to the thread: what the methods of the contract do to one database. */
import type { WorkerId } from '../../../job/ids.ts'
import type { WakeUp } from '../../store.ts'
import * as admin from './admin.ts'
import * as book from './book.ts'
import { cycle, idleCycle } from './claim.ts'
import type { Engine } from './engine.ts'
import { enqueue } from './enqueue.ts'
import * as listing from './list.ts'
import { isRescueDue, rescue } from './rescue.ts'
import * as upkeep from './upkeep.ts'
import * as workers from './workers.ts'

/** Steps that only read. */
export const READS = {
  get: admin.get,
  list: listing.list,
  deadGroups: listing.deadGroups,
  queues: admin.queues,
  listSchedules: book.listSchedules,
  listNotes: book.listNotes,
  news,
}

export const WRITES = {
  enqueue,
  register: workers.register,
  retire: workers.retire,
  renew: workers.renew,
  cycle,
  heartbeat: workers.heartbeat,
  promote: upkeep.promote,
  rescue,
  prune: upkeep.prune,
  lead: upkeep.lead,
  setPaused: admin.setPaused,
  change: admin.change,
  putSchedule: book.putSchedule,
  fire: book.fire,
  putNote: book.putNote,
}

/**
 * What some of the writes answer if they have nothing to write; undefined if they have. It only reads: an idle process
 * must neither take the write lock nor wait for the disk.
 */
export const IDLE: { readonly [Name in keyof typeof WRITES]?: Idle<Name> } = {
  cycle: idleCycle,
  promote: (engine) => {
    const nextInMs = upkeep.nextInMs(engine)
    return nextInMs === 0 ? undefined : { promoted: 0, nextInMs }
  },
  rescue: (engine) => (isRescueDue(engine) ? undefined : { workers: [], jobs: [] }),
}

type Idle<Name extends keyof typeof WRITES> = (
  ...args: Parameters<(typeof WRITES)[Name]>
) => ReturnType<(typeof WRITES)[Name]> | undefined

type Steps = typeof READS & typeof WRITES

export type StepName = keyof Steps
export type StepArgs<Name extends StepName> = Steps[Name] extends (
  engine: Engine,
  ...args: infer Args
) => unknown
  ? Args
  : never
export type StepAnswer<Name extends StepName> = ReturnType<Steps[Name]>

export function isRead(name: StepName): name is keyof typeof READS {
  return name in READS
}

/** Changes by other processes that this process may be waiting for. */
function news(engine: Engine): readonly WakeUp[] {
  const { db } = engine
  const names = (rows: readonly { readonly name: string }[]): string[] => rows.map(({ name }) => name)
  const inMs = upkeep.nextInMs(engine)
  return [
    ...names(db.all('readyQueues')).map((queue): WakeUp => ({ type: 'ready', queue })),
    ...names(db.all('pausedQueues')).map((queue): WakeUp => ({ type: 'paused', queue })),
    ...db
      .all<{ worker: WorkerId }>('unheardCancels')
      .map(({ worker }): WakeUp => ({ type: 'cancel', worker })),
    ...(inMs === null ? [] : [{ type: 'due', inMs } as const]),
  ]
}
