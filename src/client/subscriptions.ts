/**
 * Who is subscribed to which domain events. It is kept in the store, so that every process that publishes sees the same;
 * this writes and reads it, `publisher.ts` goes by it.
 */
import { newJob } from '../job/new-job.ts'
import { notFound } from '../job/not-found.ts'
import type { Core } from '../core/core.ts'
import type { StoreClient } from '../core/store-client.ts'
import type { Deadline } from '../std/deadline.ts'
import {
  readSubscription,
  writeSubscription,
  type StoredSubscription,
  type SubscriberTemplate,
} from './subscription.ts'

/** A subscription as it was when it was read. */
export interface Subscription {
  /** The subscriber's name. */
  readonly name: string
  /** The events that it gets: names and patterns. */
  readonly to: readonly string[]
  readonly queue: string
  /** Removes it: no event reaches the subscriber any more; its jobs stay. False if it was gone already. */
  remove(): Promise<boolean>
}

/** `hf.subscriptions` */
export interface Subscriptions {
  list(): Promise<readonly Subscription[]>
}

export class SubscriptionBook implements Subscriptions {
  readonly #core: Core
  /** The patterns of those that are defined here, by the subscriber's name. */
  readonly #declared = new Map<string, readonly string[]>()

  constructor(core: Core) {
    this.#core = core
  }

  /** It is stored when a worker starts that runs the subscriber. */
  declare(subscriber: string, patterns: readonly string[]): void {
    this.#declared.set(subscriber, patterns)
  }

  /** Stores those of these jobs that are subscribers. */
  async putDeclared(jobs: Iterable<string>): Promise<void> {
    for (const job of jobs) if (this.#declared.has(job)) await this.put(job)
  }

  /** Stores one that was declared, in place of what is stored under its name. */
  async put(subscriber: string): Promise<void> {
    const patterns = this.#declared.get(subscriber)
    if (patterns === undefined) throw notFound('subscriber', subscriber)
    const text = writeSubscription({ patterns, job: this.#template(subscriber) })
    await this.#core.store.putSubscription(subscriber, text)
  }

  remove(subscriber: string): Promise<boolean> {
    return this.#core.store.removeSubscription(subscriber)
  }

  async list(): Promise<readonly Subscription[]> {
    return (await storedSubscriptions(this.#core.store)).map(({ name, patterns, job }) => ({
      name,
      to: patterns,
      queue: job.queue,
      remove: () => this.remove(name),
    }))
  }

  /** What any job of the subscriber has, as an enqueue would make it. */
  #template(subscriber: string): SubscriberTemplate {
    const { ids, queues } = this.#core
    const {
      id: _id,
      name: _name,
      payload: _payload,
      envelope: _envelope,
      due: _due,
      unique: _unique,
      ...template
    } = newJob({
      id: ids.job(),
      definition: this.#core.jobNamed(subscriber),
      input: null,
      payload: 'null',
      options: {},
      queues,
      inherited: undefined,
    })
    return template
  }
}

export async function storedSubscriptions(
  store: StoreClient,
  deadline?: Deadline,
): Promise<readonly StoredSubscription[]> {
  return (await store.subscriptions(deadline)).map(readSubscription)
}
