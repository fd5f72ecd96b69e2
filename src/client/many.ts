/**
 * Any number of inputs, in batches that are bounded in size and in flight: the pipeline of job.enqueueMany() and
 * event.publishMany(). An input that is refused never keeps the others from being sent. If the inputs themselves break
 * off, all that came before is sent, and the break is listed at the index it came at. A store that fails to its deadline
 * ends the reading: the inputs may have no end.
 */
import type { EnqueueFailure, Shortfall } from '../errors.ts'
import { chunksOf } from '../std/chunks.ts'
import { toError } from '../std/text.ts'
import { MAX_BATCH } from '../stores/store.ts'

export interface ManySteps<Item, Answer> {
  /** Throws what is refused. A promise only if there is something to wait for: a million awaits are not free. */
  readonly prepare: (input: unknown) => Item | Promise<Item>
  /** Answers every item, in order. If it throws, everything ends: only a transaction of the caller's may do that. */
  readonly send: (items: readonly Item[]) => Promise<readonly Answer[]>
  /** Counts the answer, or says what failed. */
  readonly count: (answer: Answer, index: number) => ItemFailure | null
  /** 1: the next batch is not even read before the one before it is answered. */
  readonly maxInFlight: number
}

export interface ItemFailure {
  readonly error: unknown
  /** The store as a whole failed: it would not write the next one either. */
  readonly isStores: boolean
}

interface Batch<Item> {
  readonly items: readonly Item[]
  /** Where each came from. */
  readonly indexes: readonly number[]
}

const MAX_LISTED = 1_000

/** Resolves to null if nothing failed. */
export async function sendMany<Item, Answer>(
  inputs: Iterable<unknown> | AsyncIterable<unknown>,
  steps: ManySteps<Item, Answer>,
): Promise<Shortfall | null> {
  const failures = new Failures()
  const inFlight = new Set<Promise<void>>()
  for await (const batch of batchesOf(inputs, steps, failures)) {
    while (inFlight.size >= steps.maxInFlight) await Promise.race(inFlight)
    const sent = sendBatch(batch, steps, failures).finally(() => inFlight.delete(sent))
    inFlight.add(sent)
    if (steps.maxInFlight === 1) await sent
  }
  await Promise.all(inFlight)
  return failures.shortfall()
}

async function* batchesOf<Item, Answer>(
  inputs: Iterable<unknown> | AsyncIterable<unknown>,
  { prepare }: ManySteps<Item, Answer>,
  failures: Failures,
): AsyncGenerator<Batch<Item>> {
  let index = 0
  try {
    for await (const chunk of chunksOf<unknown>(inputs, MAX_BATCH)) {
      const items: Item[] = []
      const indexes: number[] = []
      for (const input of chunk) {
        try {
          const item = prepare(input)
          items.push(item instanceof Promise ? await item : item)
          indexes.push(index)
        } catch (error) {
          failures.add(index, error)
        }
        index++
      }
      if (items.length > 0) yield { items, indexes }
      if (failures.storeFailed) {
        failures.stoppedAt = index
        break
      }
    }
  } catch (error) {
    failures.add(index, error)
  }
}

async function sendBatch<Item, Answer>(
  { items, indexes }: Batch<Item>,
  { send, count }: ManySteps<Item, Answer>,
  failures: Failures,
): Promise<void> {
  const answers = await send(items)
  indexes.forEach((index, at) => {
    const failure = count(answers[at] as Answer, index)
    if (failure === null) return
    failures.add(index, failure.error)
    if (failure.isStores) failures.storeFailed = true
  })
}

/** Bounded: the inputs may have no end. */
class Failures {
  storeFailed = false
  /** The index from which on nothing was read any more. */
  stoppedAt: number | null = null
  readonly #listed: EnqueueFailure[] = []
  #count = 0

  add(index: number, error: unknown): void {
    this.#count++
    if (this.#listed.length < MAX_LISTED) this.#listed.push({ index, error: toError(error) })
  }

  shortfall(): Shortfall | null {
    if (this.#count === 0) return null
    const failures = this.#listed.sort((a, b) => a.index - b.index)
    return { failed: this.#count, failures, stoppedAt: this.stoppedAt }
  }
}
