/**
 * The way to the store: opened on first use, every call with a deadline, every failure with a clear error. Calls that
 * are safe to repeat can be persistent: they are tried again with backoff until their deadline, which is what carries
 * an enqueue over a restart of the store. An error that another try cannot help is thrown at once, under its own code:
 * it is not an outage.
 */
import { setMaxListeners } from 'node:events'
import { HoldfastError, type ErrorCode } from '../errors.ts'
import type { Events } from '../job/events.ts'
import { toError } from '../job/settlement.ts'
import type { Clock } from '../std/clock.ts'
import { sleep } from '../std/clock.ts'
import { withDeadline } from '../std/deadline.ts'
import type { Emitter } from '../std/emitter.ts'
import { formatDuration } from '../std/duration.ts'
import type { Random } from '../std/random.ts'
import type { Store, WakeUp } from '../stores/store.ts'
import { InsideCommit } from './inside-commit.ts'

export interface ConnectionParts {
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
  readonly events: Emitter<Events>
  /** How long a call may take, tries and all. */
  readonly timeoutMs: number
}

const FIRST_BACKOFF_MS = 50
/** A try that hangs is given up for the next one while there is time: its request or its answer may just be lost. */
const FIRST_TRY_MS = 3_000
const LONGEST_BACKOFF_MS = 2_000
/** What nobody depends on need not hold up a stop for long. */
const GOODBYE_MS = 2_000
/** While the store keeps saying no, `store.unusable` is emitted this often for each code. */
const UNUSABLE_EVERY_MS = 60_000

/** Errors about the store as a whole, which a person has to mend. A value that it refuses is its caller's business. */
const UNUSABLE: ReadonlySet<ErrorCode> = new Set(['HF_STORE_DENIED', 'HF_STORE_MISSING', 'HF_STORE_FULL'])

export class Connection {
  readonly #parts: ConnectionParts
  readonly insideCommit = new InsideCommit()
  readonly #closing = new AbortController()
  readonly #underWay = new Set<Promise<unknown>>()
  #opening: Promise<void> | undefined
  /** Whether opening was ever tried: from then on there is something to give back. */
  #touched = false
  #opened = false
  /** Since when calls fail; undefined while all is well. */
  #downSinceMs: number | undefined
  #lastAnswerMs = -Infinity
  /** What the store answered when it was last out of reach: that says more than the silence of a later try. */
  #lastExcuse: { readonly error: Error; readonly atMs: number } | undefined
  /** Errors of our own making, which the store knows nothing of. */
  readonly #unanswered = new WeakSet<object>()
  /** When `store.unusable` was last emitted for a code. */
  readonly #toldUnusableMs = new Map<ErrorCode, number>()

  constructor(parts: ConnectionParts) {
    this.#parts = parts
    // Everybody who waits listens: any number of them is no leak.
    setMaxListeners(0, this.#closing.signal)
  }

  get store(): Store {
    return this.#parts.store
  }

  get opened(): boolean {
    return this.#opened
  }

  /** Aborts when the connection closes: what only waits for the store to change need not wait any longer. */
  get closing(): AbortSignal {
    return this.#closing.signal
  }

  /** One try, bounded by the deadline. `doing` completes "could not …". */
  async call<T>(
    doing: string,
    work: (store: Store) => Promise<T>,
    timeoutMs = this.#parts.timeoutMs,
  ): Promise<T> {
    this.#refuseWhenClosed(doing)
    this.insideCommit.refuse(doing)
    const sentMs = this.#parts.clock.monotonicMs()
    const done = this.#bounded(doing, work, timeoutMs)
    this.#underWay.add(done)
    try {
      const answer = await done
      this.#noteUp()
      return answer
    } catch (error) {
      throw this.#noteFailure(doing, error, sentMs)
    } finally {
      this.#underWay.delete(done)
    }
  }

  /** Tries until the deadline. Only for steps that a store takes once however often they are asked for. */
  async persist<T>(
    doing: string,
    work: (store: Store) => Promise<T>,
    timeoutMs = this.#parts.timeoutMs,
  ): Promise<T> {
    const { clock, random } = this.#parts
    const deadlineMs = clock.monotonicMs() + timeoutMs
    let tryMs = FIRST_TRY_MS
    for (let backoffMs = FIRST_BACKOFF_MS; ; backoffMs = Math.min(backoffMs * 2, LONGEST_BACKOFF_MS)) {
      const triedMs = clock.monotonicMs()
      try {
        return await this.call(doing, work, Math.max(1, Math.min(tryMs, deadlineMs - triedMs)))
      } catch (error) {
        if (!isUnreachable(error)) throw error
        // Perhaps nothing was lost, and the store is only slow: the next try has more time.
        if (clock.monotonicMs() - triedMs >= tryMs) tryMs *= 2
        const pauseMs = backoffMs * (0.5 + random.float() / 2)
        if (clock.monotonicMs() + pauseMs >= deadlineMs) throw error
        // Cut short by a close, which the next try then tells.
        await sleep(clock, pauseMs, this.closing).catch(() => undefined)
      }
    }
  }

  /**
   * A step inside a transaction of the caller's. The store is opened first, within the deadline; from then on it is the
   * caller's own affair: no deadline, no second try, and no word about what is thrown.
   */
  async lend<T>(doing: string, work: (store: Store) => Promise<T>): Promise<T> {
    this.#refuseWhenClosed(doing)
    if (!this.#opened) await this.call(doing, () => Promise.resolve())
    return work(this.#parts.store)
  }

  /** The same without a promise, by a store that needs no opening for it. */
  lendSync<T>(doing: string, work: (store: Store) => T): T {
    this.#refuseWhenClosed(doing)
    return work(this.#parts.store)
  }

  /** Resolves to how to stop, which never fails: hints are best effort, and so is ending them. */
  async subscribe(listener: (hint: WakeUp) => void): Promise<() => Promise<void>> {
    let newest: object | undefined
    const stop = await this.persist('subscribe to wake-ups', async (store) => {
      const mine = {}
      newest = mine
      const stopThis = await store.subscribe(listener)
      // A try that was given up and is answered all the same would tell everything twice.
      if (newest !== mine) await stopThis()
      return stopThis
    }).catch((error: unknown) => {
      newest = undefined
      throw error
    })
    return () => this.call('end a subscription', stop, GOODBYE_MS).catch(() => undefined)
  }

  /** Takes no new calls, waits for those under way (each has its deadline), and gives the store back. */
  async close(): Promise<void> {
    if (this.closing.aborted) return
    this.#closing.abort()
    await Promise.allSettled([...this.#underWay, this.#opening])
    if (!this.#touched) return
    const { clock, timeoutMs, store } = this.#parts
    await withDeadline(clock, timeoutMs, store.close(), () => this.late('close', timeoutMs))
  }

  async #bounded<T>(doing: string, work: (store: Store) => Promise<T>, timeoutMs: number): Promise<T> {
    const { clock, store } = this.#parts
    const done = this.#opened ? work(store) : this.#open().then(() => work(store))
    // Also of a try that was given up before.
    done.catch((error: unknown) => this.#noteExcuse(error))
    return withDeadline(clock, timeoutMs, done, () => this.late(doing, timeoutMs))
  }

  #open(): Promise<void> {
    const { clock, timeoutMs, store } = this.#parts
    this.#touched = true
    this.#opening ??= withDeadline(clock, timeoutMs, store.open(), () =>
      this.late('open it', timeoutMs),
    ).then(
      () => {
        this.#opened = true
      },
      (error: unknown) => {
        // The next call tries again.
        this.#opening = undefined
        throw error
      },
    )
    return this.#opening
  }

  /** For a caller whose time is over. `doing` completes "could not …". */
  late(doing: string, timeoutMs: number): HoldfastError {
    const after = formatDuration(timeoutMs)
    const silence = `The ${this.#parts.store.kind} store did not answer within ${after}: could not ${doing}.`
    const excuse = this.#newestExcuse()
    const error =
      excuse === undefined ? unreachable(silence) : unreachable(`${silence} ${excuse.message}`, excuse)
    this.#unanswered.add(error)
    return error
  }

  #noteExcuse(thrown: unknown): void {
    const error = toError(thrown)
    if (this.#unanswered.has(error)) return
    if (error instanceof HoldfastError && !isUnreachable(error)) return
    this.#lastExcuse = { error, atMs: this.#parts.clock.monotonicMs() }
  }

  #newestExcuse(): Error | undefined {
    const { clock, timeoutMs } = this.#parts
    if (this.#lastExcuse === undefined) return undefined
    const { error, atMs } = this.#lastExcuse
    return clock.monotonicMs() - atMs <= timeoutMs ? error : undefined
  }

  #refuseWhenClosed(doing: string): void {
    if (this.closing.aborted)
      throw new HoldfastError('HF_CLOSED', `This Holdfast is closed: could not ${doing}.`)
  }

  #noteUp(): void {
    this.#lastAnswerMs = this.#parts.clock.monotonicMs()
    if (this.#downSinceMs === undefined) return
    const downMs = this.#lastAnswerMs - this.#downSinceMs
    this.#downSinceMs = undefined
    this.#parts.events.emit('store.up', { downMs })
  }

  #noteFailure(doing: string, thrown: unknown, sentMs: number): Error {
    // A close that overtook the call explains its failure better than whatever the store said.
    this.#refuseWhenClosed(doing)
    const error = this.#explain(doing, thrown)
    // A call that was sent before the newest answer came says nothing about how the store is now.
    const isNews = sentMs >= this.#lastAnswerMs
    if (isUnreachable(error) && isNews && this.#downSinceMs === undefined) {
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
    return unreachable(
      `The ${this.#parts.store.kind} store failed: could not ${doing}. ${cause.message}`,
      cause,
    )
  }
}

function unreachable(message: string, cause?: Error): HoldfastError {
  if (cause === undefined) return new HoldfastError('HF_STORE_UNREACHABLE', message)
  const hint = cause instanceof HoldfastError ? { hint: cause.hint } : {}
  return new HoldfastError('HF_STORE_UNREACHABLE', message, { ...hint, cause })
}

function isUnreachable(error: unknown): boolean {
  return error instanceof HoldfastError && error.code === 'HF_STORE_UNREACHABLE'
}
