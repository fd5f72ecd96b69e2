/**
 * From a definition and an input to a job in the store. Everything is checked before anything is written; concurrent
 * enqueues travel together; a flush whose answer was lost is repeated under its own id, so it is written once.
 */
import { HoldfastError, PartialEnqueueError, type EnqueueFailure } from '../errors.ts'
import type { JobDefinition } from '../job/definition.ts'
import type { Events } from '../job/events.ts'
import type { Ids } from '../job/ids.ts'
import { newJob, type EnqueueOptions, type QueueRules } from '../job/new-job.ts'
import { encodePayload, parseInput } from '../job/payload.ts'
import type { NewJob } from '../job/record.ts'
import { toError } from '../job/settlement.ts'
import { Batcher } from '../std/batcher.ts'
import type { Emitter } from '../std/emitter.ts'
import { MAX_BATCH, type EnqueueAnswer } from '../stores/store.ts'
import type { Connection } from './connection.ts'
import { currentJob } from './current-job.ts'

export interface EnqueuerParts {
  readonly connection: Connection
  readonly ids: Ids
  readonly events: Emitter<Events>
  readonly queues: QueueRules
}

export interface EnqueueItem {
  readonly definition: JobDefinition
  readonly input: unknown
  readonly options: EnqueueOptions
}

export interface ManyCounts {
  readonly inserted: number
  readonly duplicates: number
}

const MAX_FLUSHES_IN_FLIGHT = 2
const MAX_LISTED_FAILURES = 1_000

export class Enqueuer {
  readonly #parts: EnqueuerParts
  readonly #batcher: Batcher<NewJob, EnqueueAnswer>

  constructor(parts: EnqueuerParts) {
    this.#parts = parts
    this.#batcher = new Batcher({
      send: (jobs) => this.#flush(jobs),
      maxItems: MAX_BATCH,
      maxInFlight: MAX_FLUSHES_IN_FLIGHT,
    })
  }

  async one(item: EnqueueItem): Promise<EnqueueAnswer> {
    return this.#batcher.add(await this.#prepare(item))
  }

  /** All in one step: if one of them is refused, nothing is written. */
  async together(items: readonly EnqueueItem[]): Promise<readonly EnqueueAnswer[]> {
    if (items.length === 0) return []
    if (items.length > MAX_BATCH) {
      throw new HoldfastError('HF_BAD_OPTION', `${items.length} jobs are too many for one step.`, {
        hint: `Enqueue at most ${MAX_BATCH} together, or use job.enqueueMany(), which takes any number.`,
      })
    }
    return this.#flush(await Promise.all(items.map(async (item) => this.#prepare(item))))
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
    options: EnqueueOptions,
    onEnqueued: (answer: EnqueueAnswer, index: number) => void,
  ): Promise<ManyCounts> {
    this.#refuseOptions(definition, options)
    const tally = new Tally(onEnqueued)
    const inFlight = new Set<Promise<void>>()
    let batch: { index: number; job: NewJob }[] = []
    const send = async (): Promise<void> => {
      const sending = batch
      batch = []
      while (inFlight.size >= MAX_FLUSHES_IN_FLIGHT) await Promise.race(inFlight)
      const flush = this.#flushCounted(sending, tally).finally(() => inFlight.delete(flush))
      inFlight.add(flush)
    }
    let index = 0
    try {
      for await (const input of inputs) {
        try {
          const job = this.#prepare({ definition, input, options })
          batch.push({ index, job: job instanceof Promise ? await job : job })
        } catch (error) {
          tally.failed(index, error)
        }
        index++
        if (batch.length === MAX_BATCH) await send()
        if (tally.storeFailed) {
          tally.stoppedAt = index
          break
        }
      }
    } catch (error) {
      tally.failed(index, error)
    }
    if (batch.length > 0) await send()
    await Promise.all(inFlight)
    return tally.result()
  }

  async #flushCounted(batch: readonly { index: number; job: NewJob }[], tally: Tally): Promise<void> {
    try {
      const answers = await this.#flush(batch.map((one) => one.job))
      batch.forEach(({ index }, at) => tally.enqueued(answers[at] as EnqueueAnswer, index))
    } catch (error) {
      tally.storeFailed = true
      for (const { index } of batch) tally.failed(index, error)
    }
  }

  /** Options that cannot work are refused once, not for each of a million inputs. */
  #refuseOptions(definition: JobDefinition, options: EnqueueOptions): void {
    const { ids, queues } = this.#parts
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
    const { ids, queues } = this.#parts
    const payload = encodePayload(input, definition.name)
    const inherited = currentJob.getStore()?.inherited
    return newJob({ id: ids.job(), definition, input, payload, options, queues, inherited })
  }

  async #flush(jobs: readonly NewJob[]): Promise<readonly EnqueueAnswer[]> {
    const { connection, ids, events } = this.#parts
    const flush = { id: ids.flush(), jobs }
    const answers = await connection.persist(`enqueue ${describe(jobs)}`, (store) => store.enqueue(flush))
    if (answers.length !== jobs.length) {
      throw new HoldfastError(
        'HF_STORE_CONTRACT',
        `The store answered ${answers.length} of ${jobs.length} enqueues.`,
      )
    }
    if (events.has('job.enqueued')) {
      jobs.forEach(({ name, queue }, index) => {
        const { id, outcome } = answers[index] as EnqueueAnswer
        events.emit('job.enqueued', { id, job: name, queue, duplicate: outcome !== 'inserted' })
      })
    }
    return answers
  }
}

function describe(jobs: readonly NewJob[]): string {
  return jobs.length === 1 ? `job "${jobs[0]?.name}"` : `${jobs.length} jobs`
}

class Tally {
  /** A flush could not be written. */
  storeFailed = false
  /** The index from which on nothing was read any more. */
  stoppedAt: number | null = null
  readonly #onEnqueued: (answer: EnqueueAnswer, index: number) => void
  readonly #failures: EnqueueFailure[] = []
  #inserted = 0
  #duplicates = 0
  #failed = 0

  constructor(onEnqueued: (answer: EnqueueAnswer, index: number) => void) {
    this.#onEnqueued = onEnqueued
  }

  enqueued(answer: EnqueueAnswer, index: number): void {
    if (answer.outcome === 'inserted') this.#inserted++
    else this.#duplicates++
    this.#onEnqueued(answer, index)
  }

  failed(index: number, error: unknown): void {
    this.#failed++
    if (this.#failures.length < MAX_LISTED_FAILURES) this.#failures.push({ index, error: toError(error) })
  }

  result(): ManyCounts {
    const counts = { inserted: this.#inserted, duplicates: this.#duplicates }
    if (this.#failed === 0) return counts
    const failures = this.#failures.sort((a, b) => a.index - b.index)
    throw new PartialEnqueueError({ ...counts, failed: this.#failed, stoppedAt: this.stoppedAt }, failures)
  }
}
