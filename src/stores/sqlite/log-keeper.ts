/**
 * Keeps the log (`-wal`) small. SQLite's own checkpoints stop at what they find when they begin, and the log starts over only
 * if nobody has written meanwhile: with several processes that write without a pause it grew without an end. So a log
 * beyond a limit is truncated, which waits for the write lock as every step does.
 */
import { statSync } from 'node:fs'
import type { Clock } from '../../std/clock.ts'
import type { Database, Statement } from './driver.ts'
import { pause } from './lock.ts'

/** Four times what one process leaves between its own checkpoints. */
export const MAX_LOG_BYTES = 16 * 2 ** 20
/** How often it looks how large the log is. */
const LOOK_MS = 100
/** How long the steps of this process wait for it, and how soon again at the earliest. */
const TRY_MS = 200
const REST_MS = 1_000

export class LogKeeper {
  readonly #database: Database
  readonly #log: string
  readonly #clock: Clock
  #nextMs = 0
  #checkpoint: Statement | undefined
  #stopWaiting: (() => void) | undefined

  constructor(database: Database, path: string, clock: Clock) {
    this.#database = database
    this.#log = `${path}-wal`
    this.#clock = clock
  }

  /** To be called between transactions. Undefined if the log is small. */
  tend(): Promise<void> | undefined {
    const nowMs = this.#clock.monotonicMs()
    // An idle process looks with each call, and no timer wakes it up besides.
    const isDue = nowMs >= this.#nextMs
    if (isDue) this.#nextMs = nowMs + LOOK_MS
    const isLarge = isDue && this.#isLarge()
    if (isLarge || !isDue) this.#later()
    return isLarge ? this.#truncate(nowMs) : undefined
  }

  stop(): void {
    this.#stopWaiting?.()
    this.#stopWaiting = undefined
  }

  async #truncate(nowMs: number): Promise<void> {
    while (!this.#tryToTruncate()) {
      if (this.#clock.monotonicMs() > nowMs + TRY_MS) {
        this.#nextMs = this.#clock.monotonicMs() + REST_MS
        return
      }
      await pause(this.#clock)
    }
  }

  /** A reader can keep the log as it is until after the last call. */
  #later(): void {
    this.#stopWaiting ??= this.#clock.after(REST_MS, () => {
      this.#stopWaiting = undefined
      if (this.#isLarge() && !this.#tryToTruncate()) this.#later()
    })
  }

  /** False if somebody reads or writes. */
  #tryToTruncate(): boolean {
    try {
      this.#checkpoint ??= this.#database.prepare('pragma wal_checkpoint(truncate)')
      const row = this.#checkpoint.get()
      return (row as { readonly busy: number }).busy === 0
    } catch {
      // Busy, or a disk that fails, which the next transaction will say.
      return false
    }
  }

  #isLarge(): boolean {
    return (statSync(this.#log, { throwIfNoEntry: false })?.size ?? 0) > MAX_LOG_BYTES
  }
}
