/**
 * Time as a dependency. Everything that waits or reads the time uses a `Clock`, so tests and simulations can run years
 * in milliseconds. `now()` may jump (it is the wall clock); durations are measured with `monotonicMs()`, which only
 * grows.
 */
import { toError } from './text.ts'

export interface Clock {
  /** Milliseconds since 1970; may jump when the clock is set. */
  now(): number
  /** Milliseconds since an arbitrary moment in this process; only grows. */
  monotonicMs(): number
  /** Calls `fn` once, after `ms`; 0 means as soon as pending I/O has run. Returns a function that cancels it. */
  after(ms: number, fn: () => void): () => void
}

/** Longer timers overflow in Node and fire at once; a longer wait is capped and wakes up early. */
const LONGEST_TIMER_MS = 2 ** 31 - 1
/** A timer that fires later than this was held up: the loop was blocked, or the process frozen. */
const HELD_UP_MS = 50

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(ms, fn) {
    if (ms <= 0) {
      const immediate = setImmediate(fn)
      return () => clearImmediate(immediate)
    }
    const waitMs = Math.min(ms, LONGEST_TIMER_MS)
    const dueMs = performance.now() + waitMs
    let immediate: NodeJS.Immediate | undefined
    const timer = setTimeout(() => {
      // After a block, Node runs timers before it reads what has arrived meanwhile, so deadlines would pass although
      // their answers are here. Let I/O run first.
      if (performance.now() - dueMs > HELD_UP_MS) immediate = setImmediate(fn)
      else fn()
    }, waitMs)
    return () => {
      clearTimeout(timer)
      clearImmediate(immediate)
    }
  },
}

/** Waits; an abort ends the wait at once by rejecting with the signal's reason. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(toError(signal.reason))
      return
    }
    const onAbort = (): void => {
      cancel()
      reject(toError(signal?.reason))
    }
    const cancel = clock.after(ms, () => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    })
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}
