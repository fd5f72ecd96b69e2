/**
 * From an event to a job for each of its subscribers. Everything is checked before anything is written. Concurrent publishes
 * travel together: who subscribes is read once for them, after the last of them was called. What is published in a
 * transaction of the caller's goes alone and once.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { PartialPublishError } from '../errors.ts'
import { prepareEvent, type PreparedEvent } from '../job/domain-event.ts'
import { readEnvelope, type NewJobOptions } from '../job/new-job.ts'
import type { Envelope } from '../job/record.ts'
import { Batcher } from '../std/batcher.ts'
import { chunksOf } from '../std/chunks.ts'
import type { Deadline } from '../std/deadline.ts'
import { MAX_BATCH } from '../stores/store.ts'
import type { Core } from '../core/core.ts'
import { currentJob } from '../core/current-job.ts'
import type { Enqueuer } from './enqueuer.ts'
import { Failures } from './failures.ts'
import { fanOut, type Fate, type Published, type Way } from './fan-out.ts'
import { readSubscription } from './subscription.ts'
import { storedSubscriptions } from './subscriptions.ts'

/** An event's name, and the schema of its data. */
export interface EventKind {
  readonly name: string
  readonly schema: StandardSchemaV1 | undefined
}

export interface PublishedCounts {
  /** How many events. */
  readonly published: number
  /** How many jobs they became. */
  readonly jobs: number
}

/** What many items become, and where each came from. */
type Batch = { readonly index: number; readonly event: PreparedEvent }[]

const MAX_BATCHES_IN_FLIGHT = 2
/** For one publishMany, whose batches are full anyway. */
const MAX_FULL_BATCHES_IN_FLIGHT = 2
/** For one batch, which is several flushes if an event has many subscribers. */
const WRITES_AT_ONCE = 2

export class Publisher {
  readonly #core: Core
  readonly #enqueuer: Enqueuer
  readonly #batcher: Batcher<PreparedEvent, Fate>

  constructor(core: Core, enqueuer: Enqueuer) {
    const { timeoutMs } = core.settings
    this.#core = core
    this.#enqueuer = enqueuer
    this.#batcher = new Batcher({
      send: (events, deadline) => this.#deliver(events, deadline),
      maxItems: MAX_BATCH,
      maxInFlight: MAX_BATCHES_IN_FLIGHT,
      clock: () => core.clock,
      timeoutMs,
      late: ({ name }, lastError) => core.store.late(`publish event "${name}"`, timeoutMs, lastError),
    })
  }

  async one(kind: EventKind, data: unknown, options: NewJobOptions, tx: unknown): Promise<Published> {
    const { connection } = this.#core
    // Here, since the batch may be sent from anywhere: behind others that wait for the very transaction we are in.
    if (tx === undefined) connection.insideCommit.refuse(`publish event "${kind.name}"`)
    else this.#core.store.transactions()
    const event = await this.#prepare(kind, data, envelopeFrom(options))
    const [fate] = tx === undefined ? [await this.#batcher.add(event)] : await this.#deliverIn(tx, [event])
    return outcomeOf(fate as Fate)
  }

  /**
   * Any number, in batches that are bounded in size and in flight. One that is refused never keeps the others from being
   * published; the error at the end lists each by its index. Where the items themselves break off, all that came before
   * is published, and the break is listed at the index it came at. A store that fails to its deadline ends the reading.
   */
  async many(
    kind: EventKind,
    items: Iterable<unknown> | AsyncIterable<unknown>,
    options: NewJobOptions,
    tx: unknown,
  ): Promise<PublishedCounts> {
    if (tx === undefined) this.#core.connection.insideCommit.refuse(`publish events "${kind.name}"`)
    else this.#core.store.transactions()
    const tally = new Tally()
    const batches = this.#batches(kind, items, envelopeFrom(options), tally.failures)
    if (tx === undefined) await this.#deliverAll(batches, tally)
    // One after the other: a transaction has one connection. A database error ends it, and is passed on unchanged.
    else for await (const batch of batches) tally.count(batch, await this.#deliverIn(tx, eventsOf(batch)))
    return tally.result()
  }

  async *#batches(
    kind: EventKind,
    items: Iterable<unknown> | AsyncIterable<unknown>,
    envelope: Envelope,
    failures: Failures,
  ): AsyncGenerator<Batch> {
    let index = 0
    try {
      for await (const chunk of chunksOf<unknown>(items, MAX_BATCH)) {
        const batch: Batch = []
        for (const data of chunk) {
          try {
            const event = this.#prepare(kind, data, envelope)
            batch.push({ index, event: event instanceof Promise ? await event : event })
          } catch (error) {
            failures.add(index, error)
          }
          index++
        }
        if (batch.length > 0) yield batch
        if (failures.storeFailed) {
          failures.stoppedAt = index
          break
        }
      }
    } catch (error) {
      failures.add(index, error)
    }
  }

  async #deliverAll(batches: AsyncIterable<Batch>, tally: Tally): Promise<void> {
    const inFlight = new Set<Promise<void>>()
    for await (const batch of batches) {
      while (inFlight.size >= MAX_FULL_BATCHES_IN_FLIGHT) await Promise.race(inFlight)
      const sent = this.#deliver(eventsOf(batch))
        .catch((failed: unknown) => batch.map(() => ({ failed })))
        .then((fates) => tally.count(batch, fates))
        .finally(() => inFlight.delete(sent))
      inFlight.add(sent)
    }
    await Promise.all(inFlight)
  }

  #prepare(kind: EventKind, data: unknown, envelope: Envelope): PreparedEvent | Promise<PreparedEvent> {
    const { clock, ids } = this.#core
    return prepareEvent({ ...kind, id: ids.job(), data, envelope, nowMs: clock.now() })
  }

  /** All calls share the deadline; without one, each has the timeout of an enqueue. */
  async #deliver(events: readonly PreparedEvent[], deadline?: Deadline): Promise<readonly Fate[]> {
    const { store, ids } = this.#core
    const enqueuer = this.#enqueuer
    const way: Way = {
      writesAtOnce: WRITES_AT_ONCE,
      subscriptions: () => storedSubscriptions(store, deadline),
      write: (jobs) =>
        enqueuer.write(jobs, deadline).then(
          () => null,
          (failed: unknown) => ({ failed }),
        ),
    }
    const fates = await fanOut(events, way, () => ids.job())
    fates.forEach((fate, at) => this.#tellUnheard(events[at] as PreparedEvent, fate))
    return fates
  }

  #tellUnheard({ name, id }: PreparedEvent, fate: Fate): void {
    if (!('published' in fate) || fate.published.subscribers.length > 0) return
    this.#core.events.emit('event.unsubscribed', { event: name, id })
  }

  /** Emits no event: whether the domain event exists depends on the caller's commit. */
  #deliverIn(tx: unknown, events: readonly PreparedEvent[]): Promise<readonly Fate[]> {
    const { store, ids } = this.#core
    const way: Way = {
      writesAtOnce: 1,
      subscriptions: async () => (await store.subscriptionsIn(tx)).map(readSubscription),
      write: (jobs) => store.enqueueIn(tx, jobs).then(() => null),
    }
    return fanOut(events, way, () => ids.job())
  }
}

/** What all jobs of an event carry along, from the options and from the job whose handler publishes. */
function envelopeFrom(options: NewJobOptions): Envelope {
  return readEnvelope(options, { inMs: 0 }, currentJob.getStore()?.inherited)
}

function eventsOf(batch: Batch): readonly PreparedEvent[] {
  return batch.map(({ event }) => event)
}

function outcomeOf(fate: Fate): Published {
  if ('published' in fate) return fate.published
  throw 'refused' in fate ? fate.refused : fate.failed
}

class Tally {
  readonly failures = new Failures()
  #published = 0
  #jobs = 0

  count(batch: Batch, fates: readonly Fate[]): void {
    batch.forEach(({ index }, at) => {
      const fate = fates[at] as Fate
      if ('published' in fate) {
        this.#published++
        this.#jobs += fate.published.jobs.length
        return
      }
      if ('failed' in fate) this.failures.storeFailed = true
      this.failures.add(index, 'failed' in fate ? fate.failed : fate.refused)
    })
  }

  result(): PublishedCounts {
    const published = this.#published
    const { count: failed, stoppedAt } = this.failures
    if (failed === 0) return { published, jobs: this.#jobs }
    throw new PartialPublishError({ published, failed, stoppedAt }, this.failures.list())
  }
}
