/** Samples of a worker's counters over the last half hour; the difference to now is its recent activity. */
export interface Counts {
  readonly processed: number
  readonly failed: number
}

interface Sample extends Counts {
  readonly atMs: number
}

const RATE_MS = 60_000
const RECENT_MS = 5 * 60_000
const LONGEST_MS = 30 * 60_000
/** Minimum number of attempts for an error rate; with fewer, a single failure would be more than 10 %. */
export const ENOUGH_ATTEMPTS = 10

export class History {
  /** Oldest first, beginning with the worker's start, when all counters were zero. */
  #samples: Sample[]

  constructor(startMs: number) {
    this.#samples = [{ atMs: startMs, processed: 0, failed: 0 }]
  }

  sample(nowMs: number, { processed, failed }: Counts): void {
    this.#samples.push({ atMs: nowMs, processed, failed })
    // Keep one sample older than all windows as their start.
    while (this.#samples.length > 2 && nowMs - (this.#samples[1]?.atMs ?? nowMs) >= LONGEST_MS)
      this.#samples.shift()
  }

  /** Attempts per second over the last minute, or since the sample before it. */
  rate(nowMs: number, { processed }: Counts): number {
    const since = this.#newestFrom(nowMs - RATE_MS)
    const elapsedMs = nowMs - since.atMs
    return elapsedMs <= 0 ? 0 : ((processed - since.processed) * 1_000) / elapsedMs
  }

  /** The last five minutes, extended up to half an hour until it contains enough attempts. */
  recent(nowMs: number, { processed, failed }: Counts): Counts {
    let since = this.#newestFrom(nowMs - RECENT_MS)
    for (const sample of this.#samples.toReversed()) {
      if (processed - since.processed >= ENOUGH_ATTEMPTS) break
      if (sample.atMs < since.atMs && nowMs - sample.atMs <= LONGEST_MS) since = sample
    }
    return { processed: processed - since.processed, failed: failed - since.failed }
  }

  /** The newest sample that is at least that old, or the oldest sample. */
  #newestFrom(atMs: number): Sample {
    return this.#samples.findLast((sample) => sample.atMs <= atMs) ?? (this.#samples[0] as Sample)
  }
}
