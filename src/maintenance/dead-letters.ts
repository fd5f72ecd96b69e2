/**
 * Watches dead letters: emits an event when those of a queue grow, and passes each new one to the handler, if a process
 * has declared one. The handler is a job; its unique key is the letter and the time it failed, so two scans, or two
 * leaders, enqueue it once. The cursor is a note in the store: nothing is missed while there is no leader.
 */
import type { Core } from '../core/core.ts'
import { DEAD_LETTER_JOB } from '../job/dead-letter.ts'
import { plainDefinition, type JobDefinition } from '../job/definition.ts'
import type { JobId } from '../job/ids.ts'
import type { EnqueueItem } from '../job/new-job.ts'
import type { DeadJob } from '../job/record.ts'
import type { DeadGroupPage, JobPage } from '../stores/store.ts'
import type { Duty } from './duty.ts'

const HANDLER_TTL_MS = 300_000
const LOOK_MS = 5_000
const COUNT_MS = 60_000
const OVERLAP_MS = 60_000
/** Much longer than a letter stays in the overlap. */
const REMEMBERED = '1h'
/** Letters are read whole, with their payloads. */
const PAGE = 200

/** Enqueues all of them in one step. */
export type EnqueueTogether = (items: readonly EnqueueItem[]) => Promise<unknown>

export function deadLetterWatch(core: Core, enqueue: EnqueueTogether): Duty {
  const growth = new GrowthWatch(core)
  const handing = new HandingOver(core, enqueue)
  return {
    name: 'watch dead letters',
    async run() {
      await growth.look()
      await handing.look()
      return { againInMs: LOOK_MS }
    },
  }
}

/**
 * Tells the leader that new dead letters have a handler; does nothing without one. The declaration expires, so a
 * handler that was removed from the code is forgotten.
 */
export async function declareHandler(
  core: Core,
  handler: JobDefinition | undefined,
  ttlMs = HANDLER_TTL_MS,
): Promise<void> {
  if (handler === undefined) return
  const { queue, priority, retry } = handler
  const text = JSON.stringify({ queue, priority, attempts: retry.attempts, crashes: retry.crashes })
  await core.store.declareDeadLetterHandler(text, ttlMs)
}

/** The part of its definition that an enqueue needs: the leader may not have the handler. */
function readHandler(core: Core, text: string): JobDefinition {
  const { queue, priority, attempts, crashes } = JSON.parse(text) as {
    queue: string
    priority: number
    attempts: number
    crashes: number
  }
  const { settings } = core
  const plain = plainDefinition(DEAD_LETTER_JOB, queue, settings)
  return { ...plain, priority, retry: { ...settings.retry, attempts, crashes } }
}

class GrowthWatch {
  readonly #core: Core
  #countedMs = -Infinity
  #before: ReadonlyMap<string, number> | undefined

  constructor(core: Core) {
    this.#core = core
  }

  async look(): Promise<void> {
    const { clock, events } = this.#core
    const nowMs = clock.monotonicMs()
    const overMs = nowMs - this.#countedMs
    if (overMs < COUNT_MS) return
    this.#countedMs = nowMs
    const queues = await this.#core.store.upkeep.queues()
    const counts = new Map(queues.map(({ queue, counts: { dead } }) => [queue, dead]))
    // Ignore changes from before this process led.
    const before = this.#before ?? counts
    this.#before = counts
    for (const [queue, dead] of counts) {
      const grown = dead - (before.get(queue) ?? 0)
      if (grown > 0) events.emit('deadletters.grew', { queue, grown, dead, overMs })
    }
  }
}

/**
 * The cursor is the time of failure up to which letters have been handed over. A scan starts a little before it,
 * because a letter may become visible after others that failed later. Once no letter has appeared for that long, the
 * cursor moves past the last one, so that it is not read again.
 */
export class HandingOver {
  readonly #core: Core
  readonly #enqueue: EnqueueTogether
  /** Letters handed over recently, with the time they failed: the overlap returns them again. */
  readonly #recent = new Map<string, number>()
  /** When a new letter was last seen. */
  #newsMs: number

  constructor(core: Core, enqueue: EnqueueTogether) {
    this.#core = core
    this.#enqueue = enqueue
    this.#newsMs = core.clock.monotonicMs()
  }

  async look(): Promise<void> {
    const core = this.#core
    const handler = await core.store.upkeep.deadLetterHandler()
    if (handler === undefined) return
    const begunMs = core.clock.monotonicMs()
    const cursor = await this.#cursor()
    const newest = await this.#handAllFrom(cursor - OVERLAP_MS, readHandler(core, handler))
    if (newest === null) return
    const nowMs = core.clock.monotonicMs()
    // The scan may have missed letters that failed while it ran.
    const seenAll = newest - (nowMs - begunMs)
    if (seenAll > cursor) await this.#moveTo(seenAll)
    else if (nowMs - this.#newsMs >= OVERLAP_MS) await this.#moveTo(newest + OVERLAP_MS + 1)
    for (const [key, failedAt] of this.#recent) if (failedAt < newest - OVERLAP_MS) this.#recent.delete(key)
  }

  /** Resolves to when the newest of them failed; null if there is none. */
  async #handAllFrom(fromMs: number, definition: JobDefinition): Promise<number | null> {
    let newest: number | null = null
    let after: JobId | null = null
    do {
      const query = { finishedFrom: fromMs, limit: PAGE, after }
      const page: JobPage = await this.#core.store.upkeep.deadLetters(query)
      const letters = page.jobs.filter((job) => job.state === 'dead')
      for (const { finishedAt } of letters) newest = Math.max(newest ?? 0, finishedAt)
      await this.#hand(letters, definition)
      after = page.next
    } while (after !== null)
    return newest
  }

  /** Enqueues a job for each new letter. */
  async #hand(letters: readonly DeadJob[], definition: JobDefinition): Promise<void> {
    const items = letters.flatMap(({ id, name, finishedAt: failedAt }) => {
      const key = `${id} ${failedAt}`
      // The handler's own dead letters are not handed to it.
      if (name === DEAD_LETTER_JOB || this.#recent.has(key)) return []
      return [{ definition, input: { id, failedAt }, options: { unique: { key, for: REMEMBERED } as const } }]
    })
    if (items.length === 0) return
    await this.#enqueue(items)
    this.#newsMs = this.#core.clock.monotonicMs()
    for (const { input, options } of items) this.#recent.set(options.unique.key, input.failedAt)
  }

  /** The first handler gets letters from now on: start after the newest existing one. */
  async #cursor(): Promise<number> {
    const stored = Number((await this.#core.store.upkeep.deadLetterCursor()) ?? Number.NaN)
    if (Number.isFinite(stored)) return stored
    const first = (await this.#newestOfAll()) + OVERLAP_MS + 1
    await this.#moveTo(first)
    return first
  }

  /** By the store's times, not by the process's clock. */
  async #newestOfAll(): Promise<number> {
    let newest = 0
    let after: JobId | null = null
    do {
      const page: DeadGroupPage = await this.#core.store.upkeep.deadGroups(after)
      for (const { lastAt } of page.groups) newest = Math.max(newest, lastAt)
      after = page.next
    } while (after !== null)
    return newest
  }

  async #moveTo(timeMs: number): Promise<void> {
    await this.#core.store.upkeep.moveDeadLetterCursor(String(timeMs))
  }
}
