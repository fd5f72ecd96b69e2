/**
 * Where a scan that deletes what it finds continues. Under an old open transaction, deleted rows stay at the start, and
 * a scan from there reads all of them again. So scans start where the last one ended. A scan from the start finds what
 * was added behind the cursor; such scans take at most a twentieth of the time.
 */
import type { Clock } from '../../std/clock.ts'

const FULL_SCAN_SHARE = 20

export class ScanCursor {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  #at = 0
  #fullScanMs = -Infinity

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  /** `step` scans from a position and returns where it ended, or null if it found nothing. */
  async run(step: (from: number) => Promise<number | null>): Promise<void> {
    const startMs = this.#clock.monotonicMs()
    const full = startMs >= this.#fullScanMs
    this.#at = (await step(full ? 0 : this.#at)) ?? this.#at
    const endMs = this.#clock.monotonicMs()
    if (full) this.#fullScanMs = endMs + (endMs - startMs) * FULL_SCAN_SHARE
  }
}
