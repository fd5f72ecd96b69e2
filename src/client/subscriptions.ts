/**
 * Subscriptions to domain events. They are kept in the store, so that every publishing process sees the same ones; this
 * file writes and reads them, `publisher.ts` uses them.
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

/** A snapshot of a subscription. */
export interface Subscription {
  /** The subscriber's name. */
  readonly name: string
  /** Names and patterns of its events. */
  readonly to: readonly string[]
  readonly queue: string
  /** Removes it: the subscriber gets no more events; its jobs stay. False if it was already gone. */
  remove(): Promise<boolean>
}

/** `hf.subscriptions` */
export interface Subscriptions {
  list(): Promise<readonly Subscription[]>
}

export class SubscriptionBook implements Subscriptions {
  readonly #core: Core
  /** Patterns of the subscribers defined here, by the subscriber's name. */
  readonly #declared = new Map<string, readonly string[]>()

  constructor(core: Core) {
    this.#core = core
  }

  /** Stored when a worker that runs the subscriber starts. */
  declare(subscriber: string, patterns: readonly string[]): void {
    this.#declared.set(subscriber, patterns)
  }

  /** Stores the subscriptions of those jobs that are subscribers. */
  async putDeclared(jobs: Iterable<string>): Promise<void> {
    for (const job of jobs) if (this.#declared.has(job)) await this.put(job)
  }

  /** Stores a declared subscription, replacing the stored one of the same name. */
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

  /** The parts that all jobs of the subscriber share, as an enqueue would make them. */
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
