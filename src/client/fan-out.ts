/**
 * Delivers events to their subscribers. Subscriptions are read once for all events of a batch; all jobs of an event are
 * in one flush, so that all of them are written or none.
 */
import { HoldfastError, isRefusal } from '../errors.ts'
import type { PreparedEvent } from '../job/domain-event.ts'
import type { JobId } from '../job/ids.ts'
import type { NewJob } from '../job/record.ts'
import { eachAtOnce } from '../std/at-once.ts'
import { MAX_BATCH } from '../stores/store.ts'
import { hears, jobFor, type StoredSubscription } from './subscription.ts'

/** What happened to an event. */
export interface Published {
  /** The event's own: `input.id` of each subscriber. */
  readonly id: string
  /** Names of its subscribers; empty if there are none. */
  readonly subscribers: readonly string[]
  /** The ids of their jobs, in the same order. */
  readonly jobs: readonly string[]
}

export interface Failed {
  readonly failed: unknown
}

/** refused: this event cannot be published · failed: the store did not write it, and would not write the next one. */
export type Fate = { readonly published: Published } | { readonly refused: unknown } | Failed

/** How events reach the store: by our own calls, or in the caller's transaction. */
export interface Way {
  /** A transaction has one connection. */
  readonly writesAtOnce: number
  subscriptions(): Promise<readonly StoredSubscription[]>
  /** If it throws, the whole delivery fails; otherwise it resolves to the fate of these jobs' events only. */
  write(jobs: readonly NewJob[]): Promise<Failed | null>
}

interface Delivery {
  readonly index: number
  readonly event: PreparedEvent
  readonly to: readonly StoredSubscription[]
}

/** One fate for each event, in order. */
export async function fanOut(
  events: readonly PreparedEvent[],
  way: Way,
  newId: () => JobId,
): Promise<readonly Fate[]> {
  const subscriptions = await way.subscriptions()
  const fates: Fate[] = []
  const deliveries: Delivery[] = []
  events.forEach((event, index) => {
    const to = subscriptions.filter((subscription) => hears(subscription, event.name))
    if (to.length > MAX_BATCH) fates[index] = { refused: tooMany(event, to.length) }
    else if (to.length > 0) deliveries.push({ index, event, to })
    else fates[index] = { published: { id: event.id, subscribers: [], jobs: [] } }
  })
  const write = async (together: readonly Delivery[]): Promise<void> => {
    const made = together.map(({ event, to }) => to.map((one) => jobFor(one, event, newId())))
    const failure = await way.write(made.flat())
    const isRefused = failure !== null && isRefusal(failure.failed)
    if (isRefused && together.length > 1) {
      // The store refuses a value of one of them: the others are published without it.
      const middle = Math.ceil(together.length / 2)
      await write(together.slice(0, middle))
      return write(together.slice(middle))
    }
    together.forEach(({ index, event }, at) => {
      if (isRefused) fates[index] = { refused: failure.failed }
      else fates[index] = failure ?? { published: publishedAs(event, made[at] ?? []) }
    })
  }
  await eachAtOnce(inFlushes(deliveries), way.writesAtOnce, write)
  return fates
}

/** Groups of deliveries that fit into one flush. */
function* inFlushes(deliveries: readonly Delivery[]): Generator<readonly Delivery[]> {
  let together: Delivery[] = []
  let jobs = 0
  for (const delivery of deliveries) {
    if (jobs + delivery.to.length > MAX_BATCH) {
      yield together
      together = []
      jobs = 0
    }
    together.push(delivery)
    jobs += delivery.to.length
  }
  if (together.length > 0) yield together
}

function publishedAs({ id }: PreparedEvent, jobs: readonly NewJob[]): Published {
  return { id, subscribers: jobs.map(({ name }) => name), jobs: jobs.map((job) => job.id) }
}

function tooMany({ name }: PreparedEvent, count: number): HoldfastError {
  return new HoldfastError(
    'HF_TOO_MANY_SUBSCRIBERS',
    `Event "${name}" has ${count} subscribers, and one step takes ${MAX_BATCH} of them.`,
  )
}
