/** How long to wait between tries: longer each time, up to a limit, and spread out by chance. */

export interface Backoff {
  readonly firstMs: number
  readonly longestMs: number
}

const FACTOR = 2
/** The share of a pause that chance may take off, unless the caller says otherwise. */
const JITTER = 0.5

/** The pause after one of `pauseMs`, before jitter; 0 gives the first. */
export function nextPause({ firstMs, longestMs }: Backoff, pauseMs: number): number {
  return Math.min(Math.max(pauseMs * FACTOR, firstMs), longestMs)
}

/** The nth pause (1 is the first), before jitter. */
export function nthPause({ firstMs, longestMs }: Backoff, n: number, factor = FACTOR): number {
  return Math.min(firstMs * factor ** (n - 1), longestMs)
}

/** The pause less up to `share` of it, so that what failed together does not come back together. `chance` is from 0 to 1. */
export function jittered(ms: number, chance: number, share = JITTER): number {
  return ms * (1 - share * chance)
}
