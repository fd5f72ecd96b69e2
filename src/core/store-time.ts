/** The store's time: as the store told it, plus what has passed here since. The clock of this process does not matter. */
import type { Clock } from '../std/clock.ts'

export type StoreTime = () => number

/** To be called when the answer arrives that has the time in it. */
export function storeTime(nowMs: number, clock: Pick<Clock, 'monotonicMs'>): StoreTime {
  const toldMs = clock.monotonicMs()
  return () => nowMs + Math.floor(clock.monotonicMs() - toldMs)
}
