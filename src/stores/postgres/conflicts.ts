/** Tries again what the server undid as a whole. */
import type { Clock } from '../../std/clock.ts'
import { sleep } from '../../std/clock.ts'
import type { Random } from '../../std/random.ts'

const TRIES = 5
const FIRST_PAUSE_MS = 10

export interface RetryParts {
  readonly clock: Clock
  readonly random: Random
}

/** Only for steps that are atomic, and errors that say that nothing was done. */
export async function retryWhile<T>(
  { clock, random }: RetryParts,
  isWorthIt: (error: unknown) => boolean,
  work: () => Promise<T>,
): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await work()
    } catch (error) {
      if (tried >= TRIES || !isWorthIt(error)) throw error
      // With jitter: those who met in a deadlock would meet again.
      await sleep(clock, FIRST_PAUSE_MS * 2 ** tried * random.float())
    }
  }
}
