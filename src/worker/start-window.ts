/**
 * How long after asking the store about a job a worker may start it: `START_WITHIN_MS`. If the store takes longer than
 * that to answer, nothing would ever start, so the worker takes more time. It first says so in the store, by a note, and
 * more time counts only for what it asks afterwards: then a caller that cancels a job finds the note, or the worker finds
 * the cancel.
 */
import type { Core } from '../core/core.ts'
import { LONGEST_START_MS, START_WITHIN_MS } from '../stores/store.ts'

/** Much longer than a worker runs without a heartbeat. */
const NOTE_MS = 60_000

interface Told {
  readonly withinMs: number
  /** It counts for what was asked since then, and for starts until then. */
  readonly sinceMs: number
  readonly untilMs: number
}

export class StartWindow {
  readonly #core: Core
  readonly #note: string
  readonly #callTimeoutMs: number
  readonly #tellError: (doing: string, error: unknown) => void
  /** How long the last two answers to heartbeats took. */
  #tookMs: readonly [number, number] = [0, 0]
  #told: Told | undefined
  #telling: Promise<void> | undefined

  /** `note`: the id of its note. */
  constructor(
    core: Core,
    note: string,
    callTimeoutMs: number,
    tellError: (doing: string, error: unknown) => void,
  ) {
    this.#core = core
    this.#note = note
    this.#callTimeoutMs = callTimeoutMs
    this.#tellError = tellError
  }

  /** Whether a job may start now that the store was asked about at this time. */
  allows(askedMs: number, nowMs: number): boolean {
    const told = this.#told
    const isWide = told !== undefined && askedMs >= told.sinceMs && nowMs < told.untilMs
    return nowMs - askedMs < (isWide ? told.withinMs : START_WITHIN_MS)
  }

  /** A heartbeat was answered after this long. Two slow ones in a row are needed to take more time. */
  answered(tookMs: number): void {
    this.#tookMs = [this.#tookMs[1], tookMs]
    const neededMs = 2 * Math.min(...this.#tookMs)
    if (neededMs <= START_WITHIN_MS) return
    const { withinMs = 0, untilMs = 0 } = this.#told ?? {}
    if (neededMs > withinMs || untilMs - this.#now() < NOTE_MS / 2)
      this.#telling ??= this.#tell(Math.min(Math.ceil(1.5 * neededMs), LONGEST_START_MS))
  }

  async stop(): Promise<void> {
    await this.#telling
    if (this.#told === undefined) return
    // If it stays, some cancels wait longer than they need to, for a minute.
    await this.#core.store.worker
      .removeSlow(this.#note, this.#callTimeoutMs)
      .catch((error: unknown) => this.#tellError('remove a note', error))
  }

  async #tell(withinMs: number): Promise<void> {
    const sentMs = this.#now()
    try {
      await this.#core.store.worker.putSlow(this.#note, withinMs, NOTE_MS, this.#callTimeoutMs)
      // Until then a cancel that waits is sure to see the note.
      const untilMs = sentMs + NOTE_MS - 2 * LONGEST_START_MS
      this.#told = { withinMs, sinceMs: this.#now(), untilMs }
    } catch (error) {
      // The next heartbeat tries again.
      this.#tellError('tell how slow the store is', error)
    } finally {
      this.#telling = undefined
    }
  }

  #now(): number {
    return this.#core.clock.monotonicMs()
  }
}
