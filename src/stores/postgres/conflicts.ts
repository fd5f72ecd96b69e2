/** Repeats transactions that the server rolled back as a whole. */
import { jittered, nthPause, type Backoff } from '../../std/backoff.ts'
import type { Clock } from '../../std/clock.ts'
import { sleep } from '../../std/clock.ts'
import type { Random } from '../../std/random.ts'

const TRIES = 5
const BACKOFF: Backoff = { firstMs: 20, longestMs: 160 }

export interface RetryParts {
  readonly clock: Clock
  readonly random: Random
}

/**
 * Repeats `work`, which has failed with this error, as long as another try can help. Only for atomic steps, and for
 * errors that say that nothing was done.
 */
export async function retryAfter<T>(
  failure: unknown,
  { clock, random }: RetryParts,
  isWorthIt: (error: unknown) => boolean,
  work: () => Promise<T>,
): Promise<T> {
  let last = failure
  for (let tried = 1; tried < TRIES && isWorthIt(last); tried++) {
    // Full jitter: without it, the sessions that met in a deadlock would meet again.
    await sleep(clock, jittered(nthPause(BACKOFF, tried), random.float(), 1))
    try {
      return await work()
    } catch (error) {
      last = error
    }
  }
  throw last
}
