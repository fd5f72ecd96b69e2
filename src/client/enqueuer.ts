/**
 * From a definition and an input to a job in the store. Everything is checked before anything is written; concurrent
 * enqueues travel together; a flush whose answer was lost is repeated under its own id, so it is written once. What is
 * enqueued in a transaction of the caller's goes alone and once.
 */
import { HoldfastError, isRefusal, PartialEnqueueError } from '../errors.ts'
import type { JobDefinition } from '../job/definition.ts'
import {
  jobFrom,
  NO_OPTIONS,
  readTemplate,
  type EnqueueItem,
  type JobTemplate,
  type NewJobOptions,
} from '../job/new-job.ts'
import { encodePayload, parseInput } from '../job/payload.ts'
import type { NewJob } from '../job/record.ts'
import { Batcher } from '../std/batcher.ts'
import type { Deadline } from '../std/deadline.ts'
import { toError } from '../std/text.ts'
import { MAX_BATCH, type EnqueueAnswer } from '../stores/store.ts'
import type { Core } from '../core/core.ts'
import { sendMany } from './many.ts'

export interface ManyCounts {
  readonly inserted: number
  readonly duplicates: number
}

/** Of single enqueues: what comes meanwhile travels with the next one, so fewer calls are better calls. */
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
    const [answer] = await this.writeIn(tx, [await this.#prepare(item)])
    return answer as EnqueueAnswer
  }

  /** In a transaction of the caller's, whose library takes no asynchronous function. */
  oneSync(item: EnqueueItem, tx: unknown): EnqueueAnswer {
    const enqueue = this.#core.store.enqueueSync()
    const job = this.#prepare(item)
    if (!(job instanceof Promise))
      return this.#core.instrumentation.aroundEnqueueSync(job, () => enqueue(tx, job))
    // What it comes to is of no interest any more.
    job.catch(() => undefined)
    throw asynchronousSchema(item.definition.name)
  }

  /** The job that the schedule will enqueue. It inherits nothing from the current job. */
  async prepare(item: EnqueueItem): Promise<NewJob> {
    return this.#core.instrumentation.outside(() => this.#prepare(item))
  }

  /** Enqueues one that was prepared. */
  async prepared(job: NewJob): Promise<EnqueueAnswer> {
    this.#core.connection.insideCommit.refuse(`enqueue job "${job.name}"`)
    const envelope = this.#core.instrumentation.stamp(job.envelope, 'job', job.name)
    return this.#batcher.add({ ...job, envelope })
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
    return tx === undefined ? this.write(jobs) : this.writeIn(tx, jobs)
  }

  /** Any number of inputs: see `many.ts`. In a transaction, what its database raises ends it and is thrown as it is. */
  async many(
    definition: JobDefinition,
    inputs: Iterable<unknown> | AsyncIterable<unknown>,
    options: NewJobOptions,
    onEnqueued: (answer: EnqueueAnswer, index: number) => void,
    tx?: unknown,
  ): Promise<ManyCounts> {
    const { connection, store } = this.#core
    if (tx === undefined) connection.insideCommit.refuse(`enqueue jobs "${definition.name}"`)
    else store.transactions()
    const template = this.#templateForMany(definition, options)
    let inserted = 0
    let duplicates = 0
    const shortfall = await sendMany<NewJob, EnqueueAnswer | Error>(inputs, {
      prepare: (input) => this.#prepareFrom(template, definition, input),
      send: (jobs) => (tx === undefined ? this.#flushEach(jobs, store.deadline()) : this.writeIn(tx, jobs)),
      // A transaction has one connection.
      maxInFlight: tx === undefined ? MAX_FULL_FLUSHES_IN_FLIGHT : 1,
      count: (answer, index) => {
        if (answer instanceof Error) return { error: answer, isStores: !isRefusal(answer) }
        if (answer.outcome === 'inserted') inserted++
        else duplicates++
        onEnqueued(answer, index)
        return null
      },
    })
    if (shortfall !== null) throw new PartialEnqueueError({ inserted, duplicates }, shortfall)
    return { inserted, duplicates }
  }

  /** Options are read, and refused if they cannot work, once: not for each of a million inputs. */
  #templateForMany(definition: JobDefinition, options: NewJobOptions): JobTemplate {
    const template = this.#templateOf({ definition, options, input: undefined })
    // A key that comes from the input is judged with each job.
    const judged = { ...template, uniqueOf: undefined }
    jobFrom(judged, { id: this.#core.ids.job(), input: null, payload: 'null' })
    return template
  }

  /** A promise only where the job's schema is asynchronous: a million awaits are not free. */
  #prepare(item: EnqueueItem): NewJob | Promise<NewJob> {
    const { definition, input } = item
    const checked = parseInput(definition.schema, input, definition.name)
    return checked instanceof Promise ? checked.then(() => this.#seal(item)) : this.#seal(item)
  }

  #prepareFrom(template: JobTemplate, definition: JobDefinition, input: unknown): NewJob | Promise<NewJob> {
    const { schema, name } = definition
    const checked = parseInput(schema, input, name)
    return checked instanceof Promise
      ? checked.then(() => this.#sealWith(template, input, encodePayload(input, name)))
      : this.#sealWith(template, input, encodePayload(input, name))
  }

  #seal(item: EnqueueItem): NewJob {
    const payload = encodePayload(item.input, item.definition.name)
    return this.#sealWith(this.#templateOf(item), item.input, payload)
  }

  #sealWith(template: JobTemplate, input: unknown, payload: string): NewJob {
    const job = jobFrom(template, { id: this.#core.ids.job(), input, payload })
    const envelope = this.#core.instrumentation.stamp(job.envelope, 'job', job.name)
    return envelope === job.envelope ? job : { ...job, envelope }
  }

  #templateOf({ definition, options, at }: EnqueueItem): JobTemplate {
    const { queues, instrumentation } = this.#core
    const { inherited } = instrumentation
    return options === NO_OPTIONS && inherited === undefined
      ? this.#plainTemplate(definition)
      : readTemplate({ definition, options, at, queues, inherited })
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
   * Jobs that only travel together: if the store refuses a value of one, the others are enqueued without it. All calls
   * share the deadline. Never rejects; answers each job, or says why it was not enqueued.
   */
  async #flushEach(jobs: readonly NewJob[], deadline: Deadline): Promise<readonly (EnqueueAnswer | Error)[]> {
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

  /** The same in a transaction of the caller's. */
  writeIn(tx: unknown, jobs: readonly NewJob[]): Promise<readonly EnqueueAnswer[]> {
    const { store, instrumentation } = this.#core
    return instrumentation.aroundEnqueueIn(jobs, () => store.enqueueIn(tx, jobs))
  }
}

function asynchronousSchema(name: string): HoldfastError {
  return new HoldfastError('HF_BAD_OPTION', `The schema of job "${name}" validates asynchronously.`, {
    hint: 'Make its validation synchronous, or use await job.enqueue(input, { tx }).',
  })
}
