/**
 * `holdfast/testing`: run your own jobs in your own tests, with a clock that you move. `testQueue(hf)` puts a holdfast()
 * on an in-memory store in virtual time; your jobs, their handlers and their middleware stay as they are.
 */
import type { Args, Job } from '../client/types.ts'
import { HoldfastError } from '../errors.ts'
import type { CommitTx } from '../job/context.ts'
import { readDuration, readInstant, type Instant } from '../job/duration.ts'
import type { JobId } from '../job/ids.ts'
import { asGiven, oneOf, readersFor, readOptions, whole, type Reader } from '../job/options.ts'
import type { Holdfast } from '../holdfast.ts'
import { Hub } from '../hub.ts'
import type { Duration } from '../std/duration.ts'
import { seededRandom } from '../std/random.ts'
import { VirtualClock } from '../std/virtual-clock.ts'
import { enqueue } from '../stores/memory/core.ts'
import { storeOn } from '../stores/memory/memory-store.ts'
import { MemoryState } from '../stores/memory/state.ts'
import { MAX_BATCH, type Store } from '../stores/store.ts'
import { TestWorker, type RunResult } from './test-worker.ts'

export { VirtualClock } from '../std/virtual-clock.ts'
export type { RunResult } from './test-worker.ts'

export interface TestQueueOptions {
  /** Initial time. @default '2030-01-01T00:00:00Z' */
  readonly start?: Instant
  /** Seeds all randomness, such as the jitter of retries. @default 1 */
  readonly seed?: number
  /**
   * 'twice': the acknowledgement of each job's first run is lost and its worker dies, so every job is delivered again,
   * as it may be in production. A handler that survives this is idempotent. @default 'once'
   */
  readonly deliver?: 'once' | 'twice'
  /**
   * The client that a handler's `commit` gets: one on your test database, or a test double. The job's completion is not
   * part of that transaction here. @default one that refuses every statement
   */
  readonly tx?: CommitTx
}

export interface EnqueuedJob<In> {
  readonly id: string
  readonly input: In
  readonly runAt: Date
}

export interface DrainOptions {
  /** @default when nothing is due any more */
  readonly until?: Instant
}

export interface DrainCounts {
  readonly completed: number
  /** Became dead letters. */
  readonly dead: number
  /** Attempts that failed and will be retried. */
  readonly retried: number
}

export interface TestQueue extends AsyncDisposable {
  readonly clock: VirtualClock
  /** Enqueues the job and makes one attempt at it, whatever else waits; a delayed job moves the clock to its time. */
  run<In, Out, Q extends string>(job: Job<string, In, Out, Q>, ...args: Args<In, Q>): Promise<RunResult<Out>>
  /** Runs all that is due, and all that this enqueues, until nothing is; with `until`, on and on up to that time. */
  drain(options?: DrainOptions): Promise<DrainCounts>
  /** What waits for its turn, oldest first. */
  enqueued<In, Out, Q extends string>(job: Job<string, In, Out, Q>): Promise<readonly EnqueuedJob<In>[]>
  /** Moves the clock; runs no jobs. */
  advance(duration: Duration): Promise<void>
  /** Restores the holdfast(). */
  close(): Promise<void>
}

/** More than any test intends to run: a job that enqueues itself would run forever. */
const MAX_DRAINED = 50_000
/** Of each final state. */
const MAX_FINISHED = 100_000

const FIELDS = readersFor<TestQueueOptions>()({
  start: readInstant,
  seed: whole(Number.MIN_SAFE_INTEGER),
  deliver: oneOf('once', 'twice'),
  // Any double will do: a handler finds out what it lacks.
  tx: asGiven as Reader<CommitTx>,
})
const DRAIN_FIELDS = readersFor<DrainOptions>()({ until: readInstant })
const START_MS = Date.UTC(2030, 0)

export async function testQueue<Q extends string, Ctx>(
  hf: Holdfast<Q, Ctx>,
  options: TestQueueOptions = {},
): Promise<TestQueue> {
  const given = readOptions(options, 'testQueue()', FIELDS)
  const hub = Hub.of(hf)
  if (hub.working) throw new HoldfastError('HF_TEST_KIT', 'This holdfast() already has a running worker.')
  if (hub.underTest)
    throw new HoldfastError('HF_TEST_KIT', 'This holdfast() has a test queue already: close() it first.')
  const { start = START_MS, seed = 1, deliver = 'once', tx = NO_DATABASE } = given
  const clock = new VirtualClock(start)
  const random = seededRandom(seed)
  const state = new MemoryState({ clock, random, maxFinished: MAX_FINISHED })
  const store = taking(state, tx)
  const moveBack = hub.moveTo({ store, clock, random })
  hub.underTest = true
  const worker = new TestWorker(hub.client, clock, deliver)
  await worker.start()

  const close = async (): Promise<void> => {
    if (!hub.underTest) return
    hub.underTest = false
    worker.stop()
    moveBack()
    await store.close()
  }
  return {
    clock,
    run: (job, ...args) => worker.runNew(() => job.enqueue(...args)) as Promise<RunResult<never>>,
    async drain(options = {}) {
      return drain(worker, clock, readOptions(options, 'drain()', DRAIN_FIELDS).until)
    },
    async enqueued(job) {
      const found: EnqueuedJob<never>[] = []
      let after: JobId | null = null
      do {
        const query = {
          names: [job.name],
          states: ['scheduled', 'blocked', 'ready'] as const,
          limit: MAX_BATCH,
          after,
        }
        const page = await store.admin.list(query)
        for (const { id, payload, dueAt } of page.jobs) {
          found.push({ id, input: JSON.parse(payload) as never, runAt: new Date(dueAt) })
        }
        after = page.next
      } while (after !== null)
      return found.reverse()
    },
    async advance(duration) {
      const ms = readDuration(duration, 'advance(duration)', { orZero: true })
      await worker.allStarted()
      await clock.advance(ms)
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

/**
 * Code under test may enqueue in its own transaction, and commit in one of ours. Here jobs are enqueued at once,
 * whatever happens to the transaction.
 */
function taking(state: MemoryState, tx: CommitTx): Store {
  const store = storeOn(state)
  return {
    ...store,
    enqueue: ({ id, jobs }) => store.enqueue({ id, jobs }),
    transactions: {
      commit: async ({ worker, token, position, runMs, forget }, write) => {
        const settlement = await write(tx)
        const settle = [{ token, position, settlement, runMs: runMs(), forget }]
        const { settled } = await store.cycle({ worker, settle, claim: null })
        if (settled[0] !== 'written')
          throw new HoldfastError('HF_LEASE_LOST', 'The lease of this job is gone.')
      },
      enqueueSync: ({ id, jobs }) => {
        const answers = enqueue(state, { id, jobs })
        state.tellHints()
        return answers
      },
    },
  }
}

const NO_DATABASE: CommitTx = {
  query: (text) =>
    Promise.reject(
      new HoldfastError('HF_TEST_KIT', `There is no database behind commit() in a test: ${text}`, {
        hint: 'Pass one, or a double, as testQueue(hf, { tx }).',
      }),
    ),
}

async function drain(
  worker: TestWorker,
  clock: VirtualClock,
  untilMs: number | undefined,
): Promise<DrainCounts> {
  const counts = { completed: 0, dead: 0, retried: 0 }
  for (let ran = 0; ran < MAX_DRAINED; ran++) {
    const results = await worker.runNext()
    if (results.length === 0) {
      const nextInMs = await worker.nextDueInMs()
      if (nextInMs === null || untilMs === undefined || clock.now() + nextInMs > untilMs) {
        if (untilMs !== undefined) await clock.advance(Math.max(0, untilMs - clock.now()))
        return counts
      }
      await clock.advance(nextInMs)
    }
    for (const { state } of results) {
      if (state === 'completed') counts.completed++
      else if (state === 'dead') counts.dead++
      else if (state === 'retrying') counts.retried++
    }
  }
  throw new HoldfastError('HF_TEST_KIT', `drain() ran ${MAX_DRAINED} jobs and there are still more.`, {
    hint: 'A job probably enqueues itself: use run(), or drain({ until }) with an earlier time.',
  })
}
