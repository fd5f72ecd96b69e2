/**
 * From an event to a job for each of its subscribers. Everything is checked before anything is written. Concurrent publishes
 * travel together: who subscribes is read once for them, after the last of them was called. What is published in a
 * transaction of the caller's goes alone and once.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { isRefusal, PartialPublishError } from '../errors.ts'
import { prepareEvent, type PreparedEvent } from '../job/domain-event.ts'
import { PUBLISH, readEnvelope, type NewJobOptions } from '../job/new-job.ts'
import type { Envelope, NewJob } from '../job/record.ts'
import { Batcher } from '../std/batcher.ts'
import type { Deadline } from '../std/deadline.ts'
import { MAX_BATCH } from '../stores/store.ts'
import type { Core } from '../core/core.ts'
import type { Enqueuer } from './enqueuer.ts'
import { fanOut, type Failed, type Fate, type Published, type Way } from './fan-out.ts'
import { sendMany } from './many.ts'
import { readSubscription, type StoredSubscription } from './subscription.ts'
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

const MAX_BATCHES_IN_FLIGHT = 2
/** For one publishMany, whose batches are full anyway. */
const MAX_FULL_BATCHES_IN_FLIGHT = 2
/** For one batch, which is several flushes if an event has many subscribers. */
const WRITES_AT_ONCE = 2

/** Until when each call of a batch may take. */
interface Deadlines {
  next(): Deadline
  answered(): void
}

export class Publisher {
  readonly #core: Core
  readonly #enqueuer: Enqueuer
  readonly #batcher: Batcher<PreparedEvent, Fate>

  constructor(core: Core, enqueuer: Enqueuer) {
    const { timeoutMs } = core.settings
    this.#core = core
    this.#enqueuer = enqueuer
    this.#batcher = new Batcher({
      send: (events, deadline) => this.#deliver(events, { next: () => deadline, answered: () => undefined }),
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
    const event = await this.#prepare(kind, data, this.#envelopeFrom(options))
    const [fate] = tx === undefined ? [await this.#batcher.add(event)] : await this.#deliverIn(tx, [event])
    return outcomeOf(fate as Fate)
  }

  /** Any number of items: see `many.ts`. In a transaction, what its database raises ends it and is thrown as it is. */
  async many(
    kind: EventKind,
    items: Iterable<unknown> | AsyncIterable<unknown>,
    options: NewJobOptions,
    tx: unknown,
  ): Promise<PublishedCounts> {
    if (tx === undefined) this.#core.connection.insideCommit.refuse(`publish events "${kind.name}"`)
    else this.#core.store.transactions()
    const envelope = this.#envelopeFrom(options)
    let published = 0
    let jobs = 0
    const shortfall = await sendMany<PreparedEvent, Fate>(items, {
      prepare: (data) => this.#prepare(kind, data, envelope),
      send: (events) => (tx === undefined ? this.#deliverEach(events) : this.#deliverIn(tx, events)),
      // A transaction has one connection.
      maxInFlight: tx === undefined ? MAX_FULL_BATCHES_IN_FLIGHT : 1,
      count: (fate) => {
        if ('failed' in fate) return { error: fate.failed, isStores: true }
        if ('refused' in fate) return { error: fate.refused, isStores: false }
        published++
        jobs += fate.published.jobs.length
        return null
      },
    })
    if (shortfall !== null) throw new PartialPublishError({ published }, shortfall)
    return { published, jobs }
  }

  #prepare(kind: EventKind, data: unknown, envelope: Envelope): PreparedEvent | Promise<PreparedEvent> {
    const { clock, ids, instrumentation } = this.#core
    return prepareEvent({
      ...kind,
      id: ids.job(),
      data,
      envelope: instrumentation.stamp(envelope, 'event', kind.name),
      nowMs: clock.now(),
    })
  }

  /** What all jobs of an event carry along, from the options and from the job whose handler publishes. */
  #envelopeFrom(options: NewJobOptions): Envelope {
    return readEnvelope(options, { inMs: 0 }, this.#core.instrumentation.inherited, PUBLISH)
  }

  /**
   * Never rejects. All calls share a deadline, which is set again after each write: events with many subscribers take
   * many writes, and only a store that does not answer should end them.
   */
  #deliverEach(events: readonly PreparedEvent[]): Promise<readonly Fate[]> {
    const { store } = this.#core
    let deadline = store.deadline()
    const deadlines = { next: () => deadline, answered: () => void (deadline = store.deadline()) }
    return this.#deliver(events, deadlines).catch((failed: unknown) => events.map(() => ({ failed })))
  }

  async #deliver(events: readonly PreparedEvent[], deadlines: Deadlines): Promise<readonly Fate[]> {
    const { store, ids } = this.#core
    const write = async (jobs: readonly NewJob[]): Promise<Failed | null> => {
      try {
        await this.#enqueuer.write(jobs, deadlines.next())
      } catch (failed) {
        if (isRefusal(failed)) deadlines.answered()
        return { failed }
      }
      deadlines.answered()
      return null
    }
    const subscriptions = (): Promise<readonly StoredSubscription[]> =>
      storedSubscriptions(store, deadlines.next())
    const way: Way = { writesAtOnce: WRITES_AT_ONCE, subscriptions, write }
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
    const enqueuer = this.#enqueuer
    const way: Way = {
      writesAtOnce: 1,
      subscriptions: async () => (await store.subscriptionsIn(tx)).map(readSubscription),
      write: (jobs) => enqueuer.writeIn(tx, jobs).then(() => null),
    }
    return fanOut(events, way, () => ids.job())
  }
}

function outcomeOf(fate: Fate): Published {
  if ('published' in fate) return fate.published
  throw 'refused' in fate ? fate.refused : fate.failed
}
