/**
 * The way to the store: opens it on first use, gives every operation one deadline, and explains every failure. This is
 * the only place that tries again: an operation that is safe to repeat is sent again, with backoff, until its deadline,
 * which carries an enqueue over a restart of the store. An error that another try cannot help is thrown at once, under
 * its own code: it is not an outage. Neither is a programming error of the store.
 *
 * What may be asked of the store, and what is safe to repeat, is in `store-client.ts`.
 */
import { setMaxListeners } from 'node:events'
import { HoldfastError, isOutage, isStoreFailure, type ErrorCode } from '../errors.ts'
import type { Events } from '../job/events.ts'
import { jittered, nextPause, type Backoff } from '../std/backoff.ts'
import type { Clock } from '../std/clock.ts'
import { sleep } from '../std/clock.ts'
import { withDeadline, type Deadline } from '../std/deadline.ts'
import type { Emitter } from '../std/emitter.ts'
import { formatDuration } from '../std/duration.ts'
import { isProgrammingError } from '../std/programming-error.ts'
import type { Random } from '../std/random.ts'
import { toError } from '../std/text.ts'
import type { Store } from '../stores/store.ts'
import { InsideCommit } from './inside-commit.ts'

export interface ConnectionParts {
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
  readonly events: Emitter<Events>
  /** How long an operation may take, tries and all, unless it says otherwise. */
  readonly timeoutMs: number
}

/** What is asked of the store. */
export interface Operation<T> {
  /** Completes "could not …". */
  readonly doing: string
  readonly deadline: Deadline
  /** One try, whose answer is awaited for `withinMs`. */
  readonly send: (store: Store, withinMs: number) => Promise<T>
}

const BACKOFF: Backoff = { firstMs: 50, longestMs: 2_000 }
/** Give up a try that hangs for the next one, if there is time: its request or its reply may just be lost. */
const FIRST_TRY_MS = 3_000
/** While the store keeps saying no, `store.unusable` is emitted this often for each code. */
const UNUSABLE_EVERY_MS = 60_000

/** Errors about the store as a whole, which a person has to mend. A value that it refuses is its caller's business. */
const UNUSABLE: ReadonlySet<ErrorCode> = new Set(['HF_STORE_DENIED', 'HF_STORE_MISSING', 'HF_STORE_FULL'])

export class Connection {
  readonly #parts: ConnectionParts
  readonly insideCommit = new InsideCommit()
  readonly #closing = new AbortController()
  /** Number of operations in progress. */
  #underWay = 0
  #onIdle: (() => void) | undefined
  #opening: Promise<void> | undefined
  /** Whether opening was ever tried: from then on there is something to close. */
  #touched = false
  #opened = false
  /** Since when calls fail; undefined while all is well. */
  #downSinceMs: number | undefined
  /** How many calls the store has answered. */
  #answers = 0
  /** When `store.unusable` was last emitted for a code. */
  readonly #toldUnusableMs = new Map<ErrorCode, number>()

  constructor(parts: ConnectionParts) {
    this.#parts = parts
    // Every waiting call listens: many listeners are not a leak.
    setMaxListeners(0, this.#closing.signal)
  }

  get store(): Store {
    return this.#parts.store
  }

  /** Aborts when the connection closes: what only waits for the store to change need not wait any longer. */
  get closing(): AbortSignal {
    return this.#closing.signal
  }

  /** The deadline of an operation that begins now. */
  deadline(timeoutMs = this.#parts.timeoutMs): Deadline {
    return { atMs: this.#parts.clock.monotonicMs() + timeoutMs, timeoutMs }
  }

  /** Tries once. */
  once<T>(operation: Operation<T>): Promise<T> {
    return this.#run(operation, false)
  }

  /** Tries again until the deadline. Only for steps that a store takes once, however often it is asked. */
  repeat<T>(operation: Operation<T>): Promise<T> {
    return this.#run(operation, true)
  }

  /**
   * A step inside a transaction of the caller's. The store is opened first, within the deadline; from then on it is the
   * caller's own affair: no deadline, no second try, and whatever the database raises comes out as it is.
   */
  async inTransaction<T>(doing: string, send: (store: Store) => Promise<T>): Promise<T> {
    this.#refuseWhenClosed(doing)
    if (!this.#opened) await this.once({ doing, deadline: this.deadline(), send: () => Promise.resolve() })
    return send(this.#parts.store)
  }

  /** The same without a promise, for a store that needs no opening first. */
  inTransactionSync<T>(doing: string, send: (store: Store) => T): T {
    this.#refuseWhenClosed(doing)
    return send(this.#parts.store)
  }

  /** Takes no new calls, waits for those in progress (each has its deadline), and closes the store. */
  async close(): Promise<void> {
    if (this.closing.aborted) return
    this.#closing.abort()
    if (this.#underWay > 0) await new Promise<void>((resolve) => void (this.#onIdle = resolve))
    await this.#opening?.catch(() => undefined)
    if (!this.#touched) return
    const { clock, timeoutMs, store } = this.#parts
    await withDeadline(clock, timeoutMs, store.close(), () => this.late('close', timeoutMs))
  }

  /** The error of an operation whose time is over. */
  late(doing: string, timeoutMs: number, lastError?: Error): HoldfastError {
    const after = formatDuration(timeoutMs)
    const what = `The ${this.#parts.store.kind} store did not answer within ${after}: could not ${doing}.`
    return lastError === undefined
      ? unreachable(what)
      : unreachable(`${what} Its last error: ${lastError.message}`, lastError)
  }

  /**
   * Emits `duty.failed` for a failure that no caller hears of. Failures of the store as a whole have events of their own.
   * `doing` completes "could not …".
   */
  report(doing: string, error: unknown): void {
    if (!isStoreFailure(error)) this.#parts.events.emit('duty.failed', { duty: doing, error: toError(error) })
  }

  /** The only loop that tries again. */
  async #run<T>(operation: Operation<T>, repeats: boolean): Promise<T> {
    const { doing, deadline } = operation
    this.#refuseWhenClosed(doing)
    this.insideCommit.refuse(doing)
    let limitMs = repeats ? FIRST_TRY_MS : Infinity
    let isLate = false
    const onLate = (): void => void (isLate = true)
    this.#underWay++
    try {
      for (let backoffMs = BACKOFF.firstMs; ; backoffMs = nextPause(BACKOFF, backoffMs)) {
        const answersBefore = this.#answers
        try {
          const answer = await this.#try(operation, limitMs, onLate)
          this.#noteUp()
          return answer
        } catch (thrown) {
          const error = this.#noteFailure(doing, thrown, answersBefore)
          if (!repeats || !isOutage(error)) throw error
          // Perhaps nothing was lost, and the store is only slow: the next try has more time.
          if (isLate) limitMs *= 2
          else deadline.lastError = toError(thrown)
          if (!(await this.#pause(backoffMs, deadline))) throw error
          this.#refuseWhenClosed(doing)
          isLate = false
        }
      }
    } finally {
      if (--this.#underWay === 0) this.#onIdle?.()
    }
  }

  #try<T>({ doing, deadline, send }: Operation<T>, limitMs: number, onLate: () => void): Promise<T> {
    const { clock, store } = this.#parts
    const leftMs = Math.max(1, deadline.atMs - clock.monotonicMs())
    const withinMs = Math.min(limitMs, leftMs)
    const answer = this.#opened ? send(store, withinMs) : this.#openAndSend(send, withinMs)
    return withDeadline(clock, withinMs, answer, () => {
      onLate()
      return this.late(doing, limitMs < leftMs ? limitMs : deadline.timeoutMs, deadline.lastError)
    })
  }

  /** A call whose caller gave up while the store was being opened is not sent. */
  async #openAndSend<T>(send: Operation<T>['send'], withinMs: number): Promise<T> {
    const { clock, store } = this.#parts
    const sendByMs = clock.monotonicMs() + withinMs
    await this.#open()
    const leftMs = sendByMs - clock.monotonicMs()
    if (leftMs <= 0) throw unreachable(`The ${store.kind} store was opened too late for this call.`)
    return send(store, leftMs)
  }

  /** Waits before another try; false if there is no time for one. */
  async #pause(backoffMs: number, deadline: Deadline): Promise<boolean> {
    const { clock, random } = this.#parts
    const pauseMs = jittered(backoffMs, random.float())
    if (clock.monotonicMs() + pauseMs >= deadline.atMs) return false
    await sleep(clock, pauseMs, this.closing).catch(() => undefined)
    return true
  }

  /**
   * Shared by all callers that need the store open. Its time limit is not a caller's deadline: it only decides when a
   * hanging opening is given up, so that the next try begins another.
   */
  #open(): Promise<void> {
    const { clock, timeoutMs, store } = this.#parts
    this.#touched = true
    this.#opening ??= withDeadline(clock, timeoutMs, store.open(), () =>
      this.late('open it', timeoutMs),
    ).then(
      () => void (this.#opened = true),
      (error: unknown) => {
        this.#opening = undefined
        throw error
      },
    )
    return this.#opening
  }

  #refuseWhenClosed(doing: string): void {
    if (this.closing.aborted)
      throw new HoldfastError('HF_CLOSED', `This Holdfast is closed: could not ${doing}.`)
  }

  #noteUp(): void {
    this.#answers++
    if (this.#downSinceMs === undefined) return
    const downMs = this.#parts.clock.monotonicMs() - this.#downSinceMs
    this.#downSinceMs = undefined
    this.#parts.events.emit('store.up', { downMs })
  }

  #noteFailure(doing: string, thrown: unknown, answersBefore: number): Error {
    // A close that overtook the call explains its failure better than whatever the store said.
    this.#refuseWhenClosed(doing)
    const error = this.#explain(doing, thrown)
    // If the store has answered another call meanwhile, this one says nothing about how the store is now.
    const isNews = answersBefore === this.#answers
    if (isOutage(error) && isNews && this.#downSinceMs === undefined) {
      this.#downSinceMs = this.#parts.clock.monotonicMs()
      this.#parts.events.emit('store.down', { doing, error })
    }
    if (error instanceof HoldfastError && UNUSABLE.has(error.code)) this.#noteUnusable(doing, error)
    return error
  }

  #noteUnusable(doing: string, error: HoldfastError): void {
    const nowMs = this.#parts.clock.monotonicMs()
    if (nowMs - (this.#toldUnusableMs.get(error.code) ?? -Infinity) < UNUSABLE_EVERY_MS) return
    this.#toldUnusableMs.set(error.code, nowMs)
    this.#parts.events.emit('store.unusable', { doing, error })
  }

  #explain(doing: string, thrown: unknown): Error {
    if (thrown instanceof HoldfastError) return thrown
    const cause = toError(thrown)
    const what = `The ${this.#parts.store.kind} store failed: could not ${doing}.`
    if (!isProgrammingError(thrown)) return unreachable(`${what} ${cause.message}`, cause)
    return new HoldfastError('HF_STORE_CONTRACT', `${what} ${cause.name}: ${cause.message}`, {
      hint: 'This is a bug in the store, or a module of it does not load; `cause` has the stack.',
      cause,
    })
  }
}

function unreachable(message: string, cause?: Error): HoldfastError {
  return new HoldfastError('HF_STORE_UNREACHABLE', message, cause === undefined ? {} : { cause })
}
