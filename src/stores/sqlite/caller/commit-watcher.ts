/**
 * Polls for commits of other connections: other processes, the caller's own transactions. Unlike our own directory, the
 * caller's has no file to watch: we must not create one there.
 */
import { systemClock } from '../../../std/clock.ts'

/** Reading the number of the last commit takes a few microseconds. */
const LOOK_MS = 100

export class CommitWatcher {
  readonly #readVersion: () => string | undefined
  readonly #onNews: () => Promise<void>
  #version: string | undefined
  #cancel: (() => void) | undefined
  #isTelling = false

  /** `readVersion`: undefined while another process recovers the log, or worse. */
  constructor(readVersion: () => string | undefined, onNews: () => Promise<void>) {
    this.#readVersion = readVersion
    this.#onNews = onNews
  }

  start(): void {
    if (this.#cancel !== undefined) return
    this.#version = this.#readVersion() ?? this.#version
    this.#later()
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }

  #later(): void {
    this.#cancel = systemClock.after(LOOK_MS, () => {
      this.#later()
      this.#look()
    })
  }

  #look(): void {
    const version = this.#readVersion()
    if (version === undefined || version === this.#version || this.#isTelling) return
    this.#isTelling = true
    void this.#tell(version)
  }

  async #tell(version: string): Promise<void> {
    try {
      await this.#onNews()
      this.#version = version
    } catch {
      // What fails here fails for the next call as well, which will say so. The news are still to be told.
    } finally {
      this.#isTelling = false
    }
  }
}
