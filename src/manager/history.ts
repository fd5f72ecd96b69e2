/** What a worker had counted at some moments of the last half hour: what it did lately is the difference to now. */
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
/** So many attempts say something about a worker; of fewer, a single failure would be more than 10 %. */
export const ENOUGH_ATTEMPTS = 10

export class History {
  /** The oldest first; the first of all is the start, when nothing was counted yet. */
  #samples: Sample[]

  constructor(startMs: number) {
    this.#samples = [{ atMs: startMs, processed: 0, failed: 0 }]
  }

  sample(nowMs: number, { processed, failed }: Counts): void {
    this.#samples.push({ atMs: nowMs, processed, failed })
    // One that is older than all windows stays as their beginning.
    while (this.#samples.length > 2 && nowMs - (this.#samples[1]?.atMs ?? nowMs) >= LONGEST_MS)
      this.#samples.shift()
  }

  /** Attempts a second over the last minute, or since the sample before it. */
  rate(nowMs: number, { processed }: Counts): number {
    const since = this.#newestFrom(nowMs - RATE_MS)
    const elapsedMs = nowMs - since.atMs
    return elapsedMs <= 0 ? 0 : ((processed - since.processed) * 1_000) / elapsedMs
  }

  /** The last five minutes, or as many more, up to half an hour, as make enough attempts. */
  recent(nowMs: number, { processed, failed }: Counts): Counts {
    let since = this.#newestFrom(nowMs - RECENT_MS)
    for (const sample of this.#samples.toReversed()) {
      if (processed - since.processed >= ENOUGH_ATTEMPTS) break
      if (sample.atMs < since.atMs && nowMs - sample.atMs <= LONGEST_MS) since = sample
    }
    return { processed: processed - since.processed, failed: failed - since.failed }
  }

  /** The newest sample that is at least as old as that, or else the oldest there is. */
  #newestFrom(atMs: number): Sample {
    return this.#samples.findLast((sample) => sample.atMs <= atMs) ?? (this.#samples[0] as Sample)
  }
}
