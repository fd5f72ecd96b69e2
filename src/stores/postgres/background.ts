/**
 * Failures of work that no caller waits for. If the store is away, full or closed, callers hear of it soon enough. A bug,
 * a missing right or a broken schema may concern this work alone, so it is told here.
 */
import { HoldfastError, isOutage, type ErrorCode } from '../../errors.ts'
import type { Clock } from '../../std/clock.ts'
import { isProgrammingError } from '../../std/programming-error.ts'
import { toError } from '../../std/text.ts'

/** The same work is told of this often. */
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

  /** `doing` completes "could not …". True if another try cannot help until a person has looked. */
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

/** Errors of the server and of sockets come as they are unless another try cannot help. */
function isLasting(error: unknown): boolean {
  if (error instanceof HoldfastError) return !isOutage(error) && !PASSING.has(error.code)
  return isProgrammingError(error)
}
