/** Branded ids: a worker's id cannot be passed where a job's is meant. Created in one place, `makeIds`. */
import type { Clock } from '../std/clock.ts'
import { uuidV7Generator } from '../std/ids.ts'
import type { Random } from '../std/random.ts'

declare const brand: unique symbol
type Branded<Base, Name extends string> = Base & { readonly [brand]: Name }

/** A UUIDv7 made by the client, so that repeating an enqueue whose answer was lost is harmless. */
export type JobId = Branded<string, 'JobId'>
/** One incarnation of a worker: a worker that lost its lease continues under a new id. */
export type WorkerId = Branded<string, 'WorkerId'>
/** One flush of enqueues; the store writes each once. */
export type FlushId = Branded<string, 'FlushId'>
/** Names one lease and fences it: a later claim of the same job always has a greater token. */
export type Token = Branded<number, 'Token'>

export interface Ids {
  job(): JobId
  worker(): WorkerId
  flush(): FlushId
}

export function makeIds(clock: Pick<Clock, 'now'>, random: Random): Ids {
  const next = uuidV7Generator(clock, random)
  return { job: next as () => JobId, worker: next as () => WorkerId, flush: next as () => FlushId }
}
