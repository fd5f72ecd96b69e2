/** The types that connect events, publishers and subscribers. No code. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { RunContext } from '../job/context.ts'
import type { ReceivedEvent } from '../job/domain-event.ts'
import type { NewJobOptions } from '../job/new-job.ts'
import type { Published } from './fan-out.ts'
import type { PublishedCounts } from './publisher.ts'
import type { Args, Job, JobOptions, Parsed, Raw, TxOptions } from './types.ts'

export interface PublishOptions extends TxOptions, Pick<NewJobOptions, 'tags' | 'metadata'> {
  /** @default that of the publishing handler's job, or the event's id */
  readonly correlationId?: string
}

/** A domain event: something that happened, published to its subscribers. */
export interface DomainEvent<N extends string, S extends StandardSchemaV1 | undefined> {
  readonly name: N
  readonly schema: S
  /** Enqueues a job for each subscriber whose subscription is stored by now, all in one step or none. */
  publish(...args: Args<Raw<S>, string, PublishOptions>): Promise<Published>
  /**
   * Publishes an event for each of any number of items, in bounded memory. Throws a PartialPublishError that lists by
   * index the items that could not be published; all others are published.
   */
  publishMany(
    items: Iterable<Raw<S>> | AsyncIterable<Raw<S>>,
    options?: PublishOptions,
  ): Promise<PublishedCounts>
}

/** What a subscriber may subscribe to, one or several: an event, an event's name, or a pattern with `*` and `**`. */
interface EventRef {
  readonly name: string
  readonly schema: StandardSchemaV1 | undefined
}
type Topic = EventRef | string
export type To = Topic | readonly Topic[]
type TopicsIn<T> = T extends readonly (infer One)[] ? One : T

/** Its handler's input: typed for an event that it names, untyped for an event matched by a pattern. */
export type Received<T> = T extends string
  ? ReceivedEvent
  : T extends { readonly name: infer N extends string; readonly schema: infer S }
    ? ReceivedEvent<N, Parsed<S>>
    : T extends readonly (infer One)[]
      ? Received<One>
      : never

/** An event as stored in a subscriber's job. */
type Stored<T> = T extends string
  ? { readonly id: string; readonly name: string; readonly at: string; readonly data?: unknown }
  : T extends { readonly name: infer N extends string; readonly schema: infer S }
    ? { readonly id: string; readonly name: N; readonly at: string } & (void extends Raw<S>
        ? { readonly data?: undefined }
        : { readonly data: Raw<S> })
    : never

export interface SubscriberOptions<N extends string, T extends To, Q extends string> extends Pick<
  JobOptions<N, undefined, Q>,
  'name' | 'queue' | 'priority' | 'retry' | 'timeout'
> {
  /**
   * An event, a name, or a pattern: `*` matches one part of a name, `**` at its end one or more. Or a list of these.
   */
  readonly to: T
}

export interface SubscriberWithRun<
  N extends string,
  T extends To,
  Q extends string,
  Ctx,
  R,
> extends SubscriberOptions<N, T, Q> {
  run(context: RunContext<Received<T>, Ctx>): R | Promise<R>
  readonly on?: never
}

type EventHandler<E, Ctx> = (context: RunContext<E, Ctx>) => unknown

/** Handlers: one for each named event; with a pattern, for any events. */
type HandlersByName<T, Ctx> =
  Extract<TopicsIn<T>, string> extends never
    ? { readonly [E in TopicsIn<T> as NameOf<E>]: EventHandler<Received<E>, Ctx> }
    : { readonly [name: string]: EventHandler<ReceivedEvent, Ctx> }
type NameOf<E> = E extends { readonly name: infer N extends string } ? N : never

export interface SubscriberByName<
  N extends string,
  T extends To,
  Q extends string,
  Ctx,
> extends SubscriberOptions<N, T, Q> {
  /** A handler for each event, by its name. An event without a handler is a dead letter at once. */
  readonly on: HandlersByName<T, Ctx>
  readonly run?: never
}

/** A job whose inputs are events. To enqueue it manually, pass an event as it is stored. */
export interface Subscriber<N extends string, T, Out, Q extends string> extends Job<
  N,
  Stored<TopicsIn<T>>,
  Out,
  Q
> {
  /** Stores the subscription now; otherwise a worker that runs the subscriber does so when it starts. */
  subscribe(): Promise<void>
  /**
   * Removes the subscription: the subscriber gets no events until it subscribes again. Its jobs still run. False if it
   * was not subscribed; true if the store's first reply was lost and it is not subscribed now.
   */
  unsubscribe(): Promise<boolean>
}
