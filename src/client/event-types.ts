/** The types that make events, those who publish them and those who subscribe to them fit together. No code. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { RunContext } from '../job/context.ts'
import type { ReceivedEvent } from '../job/domain-event.ts'
import type { NewJobOptions } from '../job/new-job.ts'
import type { Published } from './fan-out.ts'
import type { PublishedCounts } from './publisher.ts'
import type { Args, Job, JobOptions, Parsed, Raw, TxOptions } from './types.ts'

export interface PublishOptions extends TxOptions, Pick<NewJobOptions, 'tags' | 'metadata'> {
  /** @default that of the job whose handler publishes, else the event's id */
  readonly correlationId?: string
}

/** A domain event: something that happened, for whoever subscribes to it. */
export interface DomainEvent<N extends string, S extends StandardSchemaV1 | undefined> {
  readonly name: N
  readonly schema: S
  /** Makes a job for each subscriber whose subscription is stored by now: all of them, in one step, or none. */
  publish(...args: Args<Raw<S>, string, PublishOptions>): Promise<Published>
  /**
   * Publishes an event for each item, however many, in bounded memory. Throws a PartialPublishError that lists by index
   * what could not be published; everything else is.
   */
  publishMany(
    items: Iterable<Raw<S>> | AsyncIterable<Raw<S>>,
    options?: PublishOptions,
  ): Promise<PublishedCounts>
}

/** What a subscriber may be subscribed to, one or several: an event, or the name of one with `*` and `**` in it. */
interface EventRef {
  readonly name: string
  readonly schema: StandardSchemaV1 | undefined
}
type Topic = EventRef | string
export type To = Topic | readonly Topic[]
type TopicsIn<T> = T extends readonly (infer One)[] ? One : T

/** What its handler gets: an event that it names comes typed, what comes by a pattern does not. */
export type Received<T> = T extends string
  ? ReceivedEvent
  : T extends { readonly name: infer N extends string; readonly schema: infer S }
    ? ReceivedEvent<N, Parsed<S>>
    : T extends readonly (infer One)[]
      ? Received<One>
      : never

/** An event as it is stored with the job of a subscriber. */
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
  /** An event, a name, or a pattern: `*` is one part of a name, `**` at its end one or more. Or a list of these. */
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

/** One for each event that is named; with a pattern, for whichever events there are handlers for. */
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
  /** A handler for each event, by its name. An event that comes and has none is a dead letter at once. */
  readonly on: HandlersByName<T, Ctx>
  readonly run?: never
}

/** A job whose input are events. What it is enqueued with by hand is an event as it is stored. */
export interface Subscriber<N extends string, T, Out, Q extends string> extends Job<
  N,
  Stored<TopicsIn<T>>,
  Out,
  Q
> {
  /** Stores the subscription at once; a worker that runs the subscriber does so when it starts. */
  subscribe(): Promise<void>
  /**
   * Removes the subscription: no event reaches the subscriber until it subscribes again. Its jobs still run. False if it was
   * not subscribed; true if it is not any more and the store's first reply was lost.
   */
  unsubscribe(): Promise<boolean>
}
