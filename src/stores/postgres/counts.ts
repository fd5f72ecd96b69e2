/**
 * Compacts the changes of job counts. Upkeep does so every second. If no worker runs, there is no upkeep, so processes that
 * enqueue or read the counts compact some as well, in the background.
 */
import type { Clock } from '../../std/clock.ts'
import type { Background } from './background.ts'
import type { Executor } from './executor.ts'
import { ScanCursor } from './scan-cursor.ts'
import type { Statements } from './statements.ts'

/** Changes that one statement adds up: about 50 ms of work. */
const AT_ONCE = 20_000
/** Maintenance that is behind continues for this long per call: about 200,000 changes. */
const CATCH_UP_MS = 500
/** Flushes of this process after which it compacts: a tenth of what it can compact then. */
const FLUSHES = 2_000
const READS_EVERY_MS = 1_000

export class Counts {
  readonly #executor: Executor
  readonly #statements: Statements
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #background: Background
  readonly #cursor: ScanCursor
  #flushes = 0
  #readMs = -Infinity
  #isBusy = false

  constructor(
    executor: Executor,
    statements: Statements,
    clock: Pick<Clock, 'monotonicMs'>,
    background: Background,
  ) {
    this.#background = background
    this.#executor = executor
    this.#statements = statements
    this.#clock = clock
    this.#cursor = new ScanCursor(clock)
  }

  /** Compacts until nothing is left, within the time that a call may take. */
  async catchUp(): Promise<void> {
    const untilMs = this.#clock.monotonicMs() + CATCH_UP_MS
    while ((await this.#step()) === AT_ONCE && this.#clock.monotonicMs() < untilMs);
  }

  /** This process has written a flush. */
  flushed(): void {
    this.#flushes += 1
    if (this.#flushes % FLUSHES === 0) this.#inBackground(() => this.#step())
  }

  /** This process has read the counts. */
  read(): void {
    if (this.#clock.monotonicMs() - this.#readMs < READS_EVERY_MS) return
    this.#readMs = this.#clock.monotonicMs()
    this.#inBackground(() => this.catchUp())
  }

  async #step(): Promise<number> {
    let compacted = 0
    await this.#cursor.run(async (from) => {
      const [row] = await this.#executor.query<{ compacted: number; block: number | null }>(
        this.#statements.compactCounts,
        [AT_ONCE, from],
      )
      compacted = row?.compacted ?? 0
      return row?.block ?? null
    })
    return compacted
  }

  #inBackground(work: () => Promise<unknown>): void {
    if (this.#isBusy) return
    this.#isBusy = true
    work()
      // The counts are exact without this, and the next call tries again.
      .catch((error: unknown) => this.#background.failed('compact the job counts', error))
      .finally(() => (this.#isBusy = false))
  }
}
