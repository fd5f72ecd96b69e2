/** The store's time: its last reading, plus the time passed here since. The clock of this process does not matter. */
import type { Clock } from '../std/clock.ts'

export type StoreTime = () => number

/** Call it when an answer with the time arrives. */
export function storeTime(nowMs: number, clock: Pick<Clock, 'monotonicMs'>): StoreTime {
  const toldMs = clock.monotonicMs()
  return () => nowMs + Math.floor(clock.monotonicMs() - toldMs)
}
