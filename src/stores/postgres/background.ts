/**
 * Failures of work that no caller waits for. If the store is unreachable, full or closed, other calls report it. A bug,
 * a missing right or a broken schema may affect this work alone, so it is reported here.
 */
import { HoldfastError, isOutage, type ErrorCode } from '../../errors.ts'
import type { Clock } from '../../std/clock.ts'
import { isProgrammingError } from '../../std/programming-error.ts'
import { toError } from '../../std/text.ts'

/** Minimum time between two reports about the same work. */
const TELL_EVERY_MS = 60_000
const PASSING: ReadonlySet<ErrorCode> = new Set(['HF_STORE_FULL', 'HF_CLOSED'])

export class Background {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #onNotice: (line: string) => void
  readonly #toldMs = new Map<string, number>()

  constructor(clock: Pick<Clock, 'monotonicMs'>, onNotice: (line: string) => void) {
    this.#clock = clock
    this.#onNotice = onNotice
  }

  /** `doing` completes "could not …". True if another try cannot help until a person intervenes. */
  failed(doing: string, error: unknown): boolean {
    if (!isLasting(error)) return false
    const nowMs = this.#clock.monotonicMs()
    if (nowMs - (this.#toldMs.get(doing) ?? -Infinity) >= TELL_EVERY_MS) {
      this.#toldMs.set(doing, nowMs)
      this.#onNotice(`The postgres store could not ${doing}. ${toError(error).message}`)
    }
    return true
  }
}

/** Temporary errors of the server and of sockets arrive as they are, not as HoldfastErrors. */
function isLasting(error: unknown): boolean {
  if (error instanceof HoldfastError) return !isOutage(error) && !PASSING.has(error.code)
  return isProgrammingError(error)
}
