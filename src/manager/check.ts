/**
 * One check of the user's. It runs at most once at a time: whoever asks meanwhile gets the answer of the run that is
 * under way, and while a run that was given up has still not returned, no second one is started beside it.
 */
import { Aborted } from '../errors.ts'
import type { Clock } from '../std/clock.ts'
import { formatDuration } from '../std/duration.ts'
import { toError } from '../std/text.ts'

/**
 * Healthy unless it throws, returns false, or returns a text, which then says what is wrong. The signal aborts when its
 * time is over.
 */
export type CheckFunction = (args: { readonly signal: AbortSignal }) => unknown

export interface CheckResult {
  readonly name: string
  readonly healthy: boolean
  /** What is wrong; null where nothing is. */
  readonly message: string | null
  readonly durationMs: number
}

export class Check {
  readonly name: string
  /** What is wrong as it was found last; null where nothing is. */
  message: string | null = null
  readonly #fn: CheckFunction
  readonly #timeoutMs: number
  #asked: Promise<CheckResult> | undefined
  /** Since when a run that was given up goes on. */
  #stuckSinceMs: number | undefined
  #abort: ((why: Aborted) => void) | undefined

  constructor(name: string, fn: CheckFunction, timeoutMs: number) {
    this.name = name
    this.#fn = fn
    this.#timeoutMs = timeoutMs
  }

  /** Never rejects. */
  ask(clock: Clock): Promise<CheckResult> {
    this.#asked ??= this.#ask(clock).finally(() => {
      this.#asked = undefined
    })
    return this.#asked
  }

  /** Ends a run that is under way, for whoever waits for it. */
  callOff(why: Aborted): void {
    this.#abort?.(why)
  }

  async #ask(clock: Clock): Promise<CheckResult> {
    const begunMs = clock.monotonicMs()
    const message =
      this.#stuckSinceMs === undefined
        ? await this.#run(clock)
        : `It was told to end, and has not returned for ${formatDuration(begunMs - this.#stuckSinceMs)}.`
    return {
      name: this.name,
      healthy: message === null,
      message,
      durationMs: clock.monotonicMs() - begunMs,
    }
  }

  async #run(clock: Clock): Promise<string | null> {
    const begunMs = clock.monotonicMs()
    const controller = new AbortController()
    let returned = false
    // A function of its own, as the check may throw before there is a promise.
    const work = (async () => this.#fn({ signal: controller.signal }))().finally(() => {
      returned = true
      this.#stuckSinceMs = undefined
    })
    const givenUp = new Promise<never>((_, reject) => {
      this.#abort = (why) => {
        controller.abort(why)
        reject(why)
      }
    })
    const stopTimer = clock.after(this.#timeoutMs, () => this.#abort?.(this.#late()))
    try {
      return messageOf(await Promise.race([work, givenUp]))
    } catch (error) {
      if (!returned) this.#stuckSinceMs = begunMs
      const { message, name } = toError(error)
      return message || name
    } finally {
      stopTimer()
      this.#abort = undefined
    }
  }

  #late(): Aborted {
    return new Aborted('timeout', `It did not return within ${formatDuration(this.#timeoutMs)}.`)
  }
}

function messageOf(answer: unknown): string | null {
  if (answer === false) return 'It returned false.'
  return typeof answer === 'string' ? answer || 'It returned an empty text.' : null
}
