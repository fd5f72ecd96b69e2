/** A job from the outside: its state, its result, a way to cancel it and to watch it. */
import { HoldfastError } from '../errors.ts'
import { duration } from '../job/duration.ts'
import type { AttemptError } from '../job/failure.ts'
import type { JobId } from '../job/ids.ts'
import { jobNotFound } from '../job/not-found.ts'
import { readersFor, readOptions, signal, string } from '../job/options.ts'
import { attemptsOf, type AttemptRecord, type JobRecord } from '../job/record.ts'
import { isFinal, type JobState } from '../job/states.ts'
import type { Duration } from '../std/duration.ts'
import { formatDuration } from '../std/duration.ts'
import { nextPause, type Backoff } from '../std/backoff.ts'
import { Bell } from '../std/bell.ts'
import { toError } from '../std/text.ts'
import type { EnqueueAnswer } from '../stores/store.ts'
import { cancelJob, type CancelResult } from './cancel.ts'
import type { Core } from '../core/core.ts'

export interface JobUpdate {
  readonly state: JobState
  /** The share done, from 0 to 1; null if the handler gave no total. */
  readonly progress: number | null
  /** The handler's count so far; null before its first report. */
  readonly done: number | null
  readonly total: number | null
  readonly note: string | null
}

export interface WatchOptions {
  readonly signal?: AbortSignal
}

export interface ResultOptions extends WatchOptions {
  /** @default '5m' */
  readonly timeout?: Duration
}

export interface Handle<Out> {
  readonly id: string
  /** Whether another job held the unique key, so no new job was made. */
  readonly duplicate: boolean
  /** Outcome of the enqueue; null for a handle from job.get(). */
  readonly outcome: EnqueueAnswer['outcome'] | null
  state(): Promise<JobState>
  /** The job's whole record: attempts, the newest error, log lines, progress. */
  read(): Promise<JobRecord>
  /** The recorded attempts, oldest first; `keep.attempts` limits their number. */
  attempts(): Promise<readonly AttemptRecord[]>
  /** Waits until the job is final. */
  result(options?: ResultOptions): Promise<Out>
  /**
   * Cancels the job and reports the effect. Once this resolves, no handler starts this job. If its worker is in another
   * process and does not answer, that takes up to a second.
   */
  cancel(reason?: string): Promise<CancelResult>
  /** Each change of state or progress, until the job is final. */
  watch(options?: WatchOptions): AsyncIterable<JobUpdate>
}

const RESULT_TIMEOUT_MS = 300_000
const POLLS: Backoff = { firstMs: 50, longestMs: 1_000 }
const WATCH_FIELDS = readersFor<WatchOptions>()({ signal })
const RESULT_FIELDS = readersFor<ResultOptions>()({ signal, timeout: duration() })

export function jobHandle<Out>(
  core: Core,
  id: string,
  name: string,
  outcome: EnqueueAnswer['outcome'] | null,
): Handle<Out> {
  return new JobHandle(core, id, name, outcome)
}

/** A class, because every enqueue creates one and most are never used. */
class JobHandle<Out> implements Handle<Out> {
  readonly id: string
  readonly duplicate: boolean
  readonly outcome: EnqueueAnswer['outcome'] | null
  readonly #core: Core
  readonly #name: string

  constructor(core: Core, id: string, name: string, outcome: EnqueueAnswer['outcome'] | null) {
    this.id = id
    this.duplicate = outcome !== null && outcome !== 'inserted'
    this.outcome = outcome
    this.#core = core
    this.#name = name
  }

  async read(): Promise<JobRecord> {
    const { id } = this
    const record = await this.#core.store.job(id as JobId)
    if (record === null) throw jobNotFound(this.id, this.#name)
    return record
  }

  async state(): Promise<JobState> {
    return (await this.read()).state
  }

  async attempts(): Promise<readonly AttemptRecord[]> {
    return attemptsOf(await this.read())
  }

  async result(options: ResultOptions = {}): Promise<Out> {
    const read = readOptions(options, 'result()', RESULT_FIELDS)
    const { timeout: timeoutMs = RESULT_TIMEOUT_MS } = read
    const deadlineMs = this.#core.clock.monotonicMs() + timeoutMs
    for await (const record of this.#changes(read.signal, deadlineMs)) {
      if (isFinal(record.state)) return resultOf(record) as Out
    }
    throw new HoldfastError(
      'HF_RESULT_TIMEOUT',
      `Job "${this.#name}" ${this.id} was not finished within ${formatDuration(timeoutMs)}.`,
    )
  }

  async cancel(reason?: string): Promise<CancelResult> {
    const result = await cancelJob(this.#core, this.id as JobId, readReason(reason))
    if (result === 'missing') throw jobNotFound(this.id, this.#name)
    return result
  }

  watch(options: WatchOptions = {}): AsyncGenerator<JobUpdate> {
    // Here, not at the first update: this is where the mistake is.
    return this.#watch(readOptions(options, 'watch()', WATCH_FIELDS).signal)
  }

  async *#watch(signal: AbortSignal | undefined): AsyncGenerator<JobUpdate> {
    let last = ''
    for await (const record of this.#changes(signal, Infinity)) {
      const update = updateOf(record)
      const shown = JSON.stringify(update)
      if (shown !== last) yield update
      last = shown
    }
  }

  #changes(signal: AbortSignal | undefined, deadlineMs: number): AsyncGenerator<JobRecord> {
    return changes(this.#core, this.id, () => this.read(), signal, deadlineMs)
  }
}

const REASON = string(4_000)

function readReason(reason: unknown): string | null {
  return reason === undefined || reason === null || reason === '' ? null : REASON(reason, 'cancel().reason')
}

/**
 * Yields the record until it is final: polled with growing pauses, and read at once when this process emits an event
 * about the job. Ends at the deadline; throws the signal's reason on abort.
 */
async function* changes(
  core: Core,
  id: string,
  read: () => Promise<JobRecord>,
  signal: AbortSignal | undefined,
  deadlineMs: number,
): AsyncGenerator<JobRecord> {
  const bell = new Bell(core.clock)
  let pollMs = POLLS.firstMs
  const ring = (event: { id: string }): void => {
    if (event.id !== id) return
    // What is told here may reach the store a moment later: look often again.
    pollMs = POLLS.firstMs
    bell.ring()
  }
  const unlisten = WATCHED.map((name) => core.events.on(name, ring))
  const onAbort = (): void => bell.ring()
  const { closing } = core.connection
  for (const one of [signal, closing]) one?.addEventListener('abort', onAbort)
  try {
    for (;;) {
      if (signal?.aborted) throw toError(signal.reason)
      const record = await read()
      yield record
      const leftMs = deadlineMs - core.clock.monotonicMs()
      if (isFinal(record.state) || leftMs <= 0) return
      await bell.wait(Math.min(pollMs, leftMs))
      pollMs = nextPause(POLLS, pollMs)
    }
  } finally {
    for (const one of [signal, closing]) one?.removeEventListener('abort', onAbort)
    for (const stop of unlisten) stop()
  }
}

const WATCHED = [
  'job.started',
  'job.completed',
  'job.failed',
  'job.snoozed',
  'job.released',
  'commit.lost',
  'job.cancelled',
  'job.progress',
] as const

function resultOf(record: JobRecord): unknown {
  switch (record.state) {
    case 'completed':
      if (record.resultDropped) {
        throw new HoldfastError(
          'HF_RESULT_DROPPED',
          `Job "${record.name}" completed, but its result was too large to keep.`,
        )
      }
      return record.result === null ? undefined : (JSON.parse(record.result) as unknown)
    case 'dead':
      throw new HoldfastError(
        'HF_JOB_FAILED',
        `Job "${record.name}" failed for good: ${record.error.message}`,
        {
          cause: asThrown(record.error),
        },
      )
    case 'cancelled': {
      const why = record.reason === null ? '' : `: ${record.reason}`
      throw new HoldfastError('HF_JOB_CANCELLED', `Job "${record.name}" was cancelled${why}.`)
    }
    case 'scheduled':
    case 'blocked':
    case 'ready':
    case 'running':
      throw new Error(`job ${record.id} is ${record.state}, not final`)
  }
}

/** The handler's error, as far as it was kept. */
function asThrown({ name, message, code, stack }: AttemptError): Error {
  return Object.assign(new Error(message), {
    name,
    ...(code === null ? {} : { code }),
    ...(stack === null ? {} : { stack }),
  })
}

function updateOf(record: JobRecord): JobUpdate {
  const { progress, state } = record
  if (progress === null) return { state, progress: null, done: null, total: null, note: null }
  const { done, total, note } = progress
  return { state, progress: total === null || total === 0 ? null : done / total, done, total, note }
}
