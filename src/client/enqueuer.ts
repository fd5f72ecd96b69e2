/**
 * From a definition and an input to a job in the store. Everything is checked before anything is written; concurrent
 * enqueues travel together; a flush whose answer was lost is repeated under its own id, so it is written once. What is
 * enqueued in a transaction of the caller's goes alone and once.
 */
import { HoldfastError, isRefusal, PartialEnqueueError } from '../errors.ts'
import type { JobDefinition } from '../job/definition.ts'
import {
  jobFrom,
  newJob,
  NO_OPTIONS,
  readTemplate,
  type EnqueueItem,
  type JobTemplate,
  type NewJobOptions,
} from '../job/new-job.ts'
import { encodePayload, parseInput } from '../job/payload.ts'
import type { NewJob } from '../job/record.ts'
import { toError } from '../job/settlement.ts'
import { Batcher } from '../std/batcher.ts'
import { chunksOf } from '../std/chunks.ts'
import type { Deadline } from '../std/deadline.ts'
import { MAX_BATCH, type EnqueueAnswer } from '../stores/store.ts'
import type { Core } from '../core/core.ts'
import { currentJob } from '../core/current-job.ts'
import { Failures } from './failures.ts'

export interface ManyCounts {
  readonly inserted: number
  readonly duplicates: number
}

/** Jobs made from many inputs, with the index of each input. */
type Batch = { readonly index: number; readonly job: NewJob }[]

/** For single enqueues: those that arrive meanwhile are sent with the next call, so fewer calls are better. */
const MAX_FLUSHES_IN_FLIGHT = 2
/** For one enqueueMany, whose flushes are full anyway. */
const MAX_FULL_FLUSHES_IN_FLIGHT = 4

export class Enqueuer {
  readonly #core: Core
  readonly #batcher: Batcher<NewJob, EnqueueAnswer>
  /** What a job without options is made of, by its definition. */
  readonly #plain = new WeakMap<JobDefinition, JobTemplate>()

  constructor(core: Core) {
    this.#core = core
    this.#batcher = new Batcher({
      send: (jobs, deadline) =>
        jobs.length === 1 ? this.write(jobs, deadline) : this.#flushEach(jobs, deadline),
      maxItems: MAX_BATCH,
      maxInFlight: MAX_FLUSHES_IN_FLIGHT,
      clock: () => core.clock,
      timeoutMs: core.settings.timeoutMs,
      late: ({ name }, lastError) =>
        core.store.late(`enqueue job "${name}"`, core.settings.timeoutMs, lastError),
    })
  }

  /** Throws synchronously if the job's schema is synchronous: the caller is asynchronous anyway. */
  one(item: EnqueueItem, tx?: unknown): Promise<EnqueueAnswer> {
    if (tx !== undefined) return this.#oneIn(tx, item)
    // Here, since the flush may be sent from anywhere: behind others that wait for the very transaction we are in.
    this.#core.connection.insideCommit.refuse(`enqueue job "${item.definition.name}"`)
    const job = this.#prepare(item)
    return job instanceof Promise ? job.then((made) => this.#batcher.add(made)) : this.#batcher.add(job)
  }

  async #oneIn(tx: unknown, item: EnqueueItem): Promise<EnqueueAnswer> {
    this.#core.store.transactions()
    const [answer] = await this.#core.store.enqueueIn(tx, [await this.#prepare(item)])
    return answer as EnqueueAnswer
  }

  /** In a transaction of the caller's, whose library takes no asynchronous function. */
  oneSync(item: EnqueueItem, tx: unknown): EnqueueAnswer {
    const enqueue = this.#core.store.enqueueSync()
    const job = this.#prepare(item)
    if (!(job instanceof Promise)) return enqueue(tx, job)
    // Its result no longer matters.
    job.catch(() => undefined)
    throw asynchronousSchema(item.definition.name)
  }

  /** The job that the schedule will enqueue. It inherits nothing from the current job. */
  async prepare(item: EnqueueItem): Promise<NewJob> {
    return currentJob.exit(() => this.#prepare(item))
  }

  /** Enqueues one that was prepared. */
  async prepared(job: NewJob): Promise<EnqueueAnswer> {
    this.#core.connection.insideCommit.refuse(`enqueue job "${job.name}"`)
    return this.#batcher.add(job)
  }

  /** All in one step: if one of them is refused, nothing is written. */
  async together(items: readonly EnqueueItem[], tx?: unknown): Promise<readonly EnqueueAnswer[]> {
    if (tx !== undefined) this.#core.store.transactions()
    if (items.length === 0) return []
    if (items.length > MAX_BATCH) {
      throw new HoldfastError('HF_BAD_OPTION', `${items.length} jobs are too many for one step.`, {
        hint: `Enqueue at most ${MAX_BATCH} together, or use job.enqueueMany(), which takes any number.`,
      })
    }
    const jobs = await Promise.all(items.map(async (item) => this.#prepare(item)))
    return tx === undefined ? this.write(jobs) : this.#core.store.enqueueIn(tx, jobs)
  }

  /**
   * Any number, in flushes that are bounded in size and in flight. An input that is refused never keeps the others from
   * being enqueued; the error at the end lists each by its index. Where the inputs themselves break off, all that came
   * before is enqueued, and the break is listed at the index it came at. A store that fails to its deadline ends the
   * reading: the inputs may have no end.
   */
  async many(
    definition: JobDefinition,
    inputs: Iterable<unknown> | AsyncIterable<unknown>,
    options: NewJobOptions,
    onEnqueued: (answer: EnqueueAnswer, index: number) => void,
    tx?: unknown,
  ): Promise<ManyCounts> {
    if (tx === undefined) this.#core.connection.insideCommit.refuse(`enqueue jobs "${definition.name}"`)
    else this.#core.store.transactions()
    this.#refuseOptions(definition, options)
    const tally = new Tally(onEnqueued)
    const batches = this.#batches(definition, inputs, options, tally)
    if (tx === undefined) await this.#flushAll(batches, tally)
    else await this.#flushAllIn(tx, batches, tally)
    return tally.result()
  }

  async *#batches(
    definition: JobDefinition,
    inputs: Iterable<unknown> | AsyncIterable<unknown>,
    options: NewJobOptions,
    tally: Tally,
  ): AsyncGenerator<Batch> {
    let index = 0
    try {
      for await (const chunk of chunksOf<unknown>(inputs, MAX_BATCH)) {
        const batch: Batch = []
        for (const input of chunk) {
          try {
            const job = this.#prepare({ definition, input, options })
            batch.push({ index, job: job instanceof Promise ? await job : job })
          } catch (error) {
            tally.failures.add(index, error)
          }
          index++
        }
        if (batch.length > 0) yield batch
        if (tally.failures.storeFailed) {
          tally.failures.stoppedAt = index
          break
        }
      }
    } catch (error) {
      tally.failures.add(index, error)
    }
  }

  async #flushAll(batches: AsyncIterable<Batch>, tally: Tally): Promise<void> {
    const inFlight = new Set<Promise<void>>()
    for await (const batch of batches) {
      while (inFlight.size >= MAX_FULL_FLUSHES_IN_FLIGHT) await Promise.race(inFlight)
      const flush = this.#flushCounted(batch, tally).finally(() => inFlight.delete(flush))
      inFlight.add(flush)
    }
    await Promise.all(inFlight)
  }

  /** One after the other: a transaction has one connection. A database error ends it, and is passed on unchanged. */
  async #flushAllIn(tx: unknown, batches: AsyncIterable<Batch>, tally: Tally): Promise<void> {
    for await (const batch of batches) {
      const answers = await this.#core.store.enqueueIn(
        tx,
        batch.map(({ job }) => job),
      )
      tally.answered(batch, answers)
    }
  }

  async #flushCounted(batch: Batch, tally: Tally): Promise<void> {
    tally.answered(batch, await this.#flushEach(batch.map(({ job }) => job)))
  }

  /** Options that cannot work are refused once, not for each of a million inputs. */
  #refuseOptions(definition: JobDefinition, options: NewJobOptions): void {
    const { ids, queues } = this.#core
    const plain = { ...definition, unique: undefined }
    newJob({
      id: ids.job(),
      definition: plain,
      input: null,
      payload: 'null',
      options,
      queues,
      inherited: undefined,
    })
  }

  /** A promise only where the job's schema is asynchronous: a million awaits are not free. */
  #prepare(item: EnqueueItem): NewJob | Promise<NewJob> {
    const { definition, input } = item
    const checked = parseInput(definition.schema, input, definition.name)
    return checked instanceof Promise ? checked.then(() => this.#seal(item)) : this.#seal(item)
  }

  #seal({ definition, input, options }: EnqueueItem): NewJob {
    const payload = encodePayload(input, definition.name)
    const { inherited } = this.#core.instrumentation
    const template =
      options === NO_OPTIONS && inherited === undefined
        ? this.#plainTemplate(definition)
        : readTemplate({ definition, options, queues: this.#core.queues, inherited })
    return jobFrom(template, { id: this.#core.ids.job(), input, payload })
  }

  #plainTemplate(definition: JobDefinition): JobTemplate {
    let template = this.#plain.get(definition)
    if (template === undefined) {
      const { queues } = this.#core
      template = readTemplate({ definition, options: NO_OPTIONS, queues, inherited: undefined })
      this.#plain.set(definition, template)
    }
    return template
  }

  /**
   * Jobs that only travel together: if the store refuses a value of one, the others are enqueued without it. Never
   * rejects; answers each job, or says why it was not enqueued.
   */
  async #flushEach(
    jobs: readonly NewJob[],
    deadline?: Deadline,
  ): Promise<readonly (EnqueueAnswer | Error)[]> {
    try {
      return await this.write(jobs, deadline)
    } catch (error) {
      if (!isRefusal(error) || jobs.length === 1) return jobs.map(() => toError(error))
      const middle = Math.ceil(jobs.length / 2)
      const before = await this.#flushEach(jobs.slice(0, middle), deadline)
      return [...before, ...(await this.#flushEach(jobs.slice(middle), deadline))]
    }
  }

  /** Writes jobs that are made already, in one step. */
  write(jobs: readonly NewJob[], deadline?: Deadline): Promise<readonly EnqueueAnswer[]> {
    const { store, instrumentation } = this.#core
    return instrumentation.aroundEnqueue(jobs, () => store.enqueue(jobs, deadline))
  }
}

function asynchronousSchema(name: string): HoldfastError {
  return new HoldfastError('HF_BAD_OPTION', `The schema of job "${name}" validates asynchronously.`, {
    hint: 'Make its validation synchronous, or use await job.enqueue(input, { tx }).',
  })
}

class Tally {
  readonly failures = new Failures()
  readonly #onEnqueued: (answer: EnqueueAnswer, index: number) => void
  #inserted = 0
  #duplicates = 0

  constructor(onEnqueued: (answer: EnqueueAnswer, index: number) => void) {
    this.#onEnqueued = onEnqueued
  }

  answered(batch: Batch, answers: readonly (EnqueueAnswer | Error)[]): void {
    batch.forEach(({ index }, at) => {
      const answer = answers[at] as EnqueueAnswer | Error
      if (answer instanceof Error) {
        this.failures.add(index, answer)
        if (!isRefusal(answer)) this.failures.storeFailed = true
        return
      }
      if (answer.outcome === 'inserted') this.#inserted++
      else this.#duplicates++
      this.#onEnqueued(answer, index)
    })
  }

  result(): ManyCounts {
    const counts = { inserted: this.#inserted, duplicates: this.#duplicates }
    const { count: failed, stoppedAt } = this.failures
    if (failed === 0) return counts
    throw new PartialEnqueueError({ ...counts, failed, stoppedAt }, this.failures.list())
  }
}
