/**
 * How many open jobs may stand before a start. The number tells the store after a crash which jobs can have been running
 * (`Store.register`, `atOnce`). A finished job is open until its settle is answered, so a tight number makes a slot wait
 * for that answer. It begins at the number of slots, which is exact; once jobs are so short that waiting costs more than
 * 2 % of the time, it grows, and it shrinks again when fewer are needed. A greater number counts from when the store has
 * answered, a smaller one from before it is sent. So the store's number is never less than the one that is kept to here.
 */

const WINDOW_MS = 1_000
const MOST_STALLED_MS = 20

export class StartGate {
  readonly #slots: number
  readonly #onWanted: () => void
  /** What the store knows at least. */
  #bound: number
  #wanted: number
  /** The most that was needed since the last time the number was sent, and before that. */
  #peak = 0
  #peakBefore = 0
  #stalledSinceMs: number | undefined
  #stalledMs = 0
  #windowStartMs = 0

  /** `onWanted`: the number should be sent soon. */
  constructor(slots: number, onWanted: () => void) {
    this.#slots = slots
    this.#bound = slots
    this.#wanted = slots
    this.#onWanted = onWanted
  }

  /**
   * Whether a job may start that `before` known open jobs and at most `unknown` others stand before. `paced`: settles make
   * room in a moment, except among the unknown jobs.
   */
  allows(before: number, unknown: number, paced: boolean, nowMs: number): boolean {
    const needed = before + unknown + 1
    this.#peak = Math.max(this.#peak, needed)
    if (needed <= this.#bound) {
      this.#endStall(nowMs)
      return true
    }
    this.#stalledSinceMs ??= nowMs
    this.#want(Math.max(this.#slots + unknown, paced ? 0 : needed))
    return false
  }

  /** The number to send now, while `open` known jobs may have started and `unknown` others may be open. */
  sending(open: number, unknown: number): number {
    const least = this.#slots + unknown
    const needed = Math.max(least, this.#peak, this.#peakBefore, open + unknown)
    this.#peakBefore = this.#peak
    this.#peak = 0
    const wanted = this.#wanted > this.#bound ? this.#wanted : Math.min(this.#wanted, needed)
    this.#wanted = Math.max(wanted, least)
    this.#bound = Math.min(this.#bound, this.#wanted)
    return this.#wanted
  }

  /** The store has answered a call that told it this number. */
  answered(sent: number): void {
    this.#bound = Math.min(sent, this.#wanted)
  }

  #endStall(nowMs: number): void {
    if (this.#stalledSinceMs === undefined) return
    if (nowMs - this.#windowStartMs > WINDOW_MS) {
      this.#windowStartMs = nowMs
      this.#stalledMs = 0
    }
    this.#stalledMs += nowMs - this.#stalledSinceMs
    this.#stalledSinceMs = undefined
    if (this.#stalledMs <= MOST_STALLED_MS) return
    this.#stalledMs = 0
    this.#want(Math.ceil(this.#bound * 1.5) + 1)
  }

  #want(number: number): void {
    if (number <= this.#wanted) return
    this.#wanted = number
    this.#onWanted()
  }
}
