/**
 * Watches over dead letters: tells when a queue's grow, and hands each new one to the handler, where some process has
 * declared one. The handler is a job; its unique key is the letter and the time it failed, so that looking twice, or by
 * two leaders, enqueues it once. Where it had got to is a note in the store: nothing is missed while nobody leads.
 */
import type { Core } from '../client/core.ts'
import { DEAD_LETTER_JOB } from '../client/dead-letters.ts'
import { plainDefinition, type JobDefinition } from '../job/definition.ts'
import type { JobId } from '../job/ids.ts'
import type { JobRecord } from '../job/record.ts'
import { MAX_BATCH, type Store } from '../stores/store.ts'
import { DUTY_TIMEOUT_MS, type Duty } from './duty.ts'

/** The note that tells whoever leads of a handler, and what its jobs are made of. */
const HANDLER_KIND = 'dead-letter-handler'
const HANDLER = 'handler'
const LOOK_MS = 5_000
const COUNT_MS = 60_000
/** A letter may become visible a little after others that failed later. */
const OVERLAP_MS = 60_000
/** Far longer than the overlap, and than two leaders can differ. */
const REMEMBERED = '1h'
const CURSOR_KIND = 'cursor'
const CURSOR = 'dead-letters'

export function deadLetterWatch(core: Core): Duty {
  const growth = new GrowthWatch(core)
  const handing = new HandingOver(core)
  return {
    name: 'watch dead letters',
    async run() {
      await growth.look()
      await handing.look()
      return { againInMs: LOOK_MS }
    },
  }
}

/** So that whoever leads knows that new dead letters are wanted; nothing to tell where there is no handler. */
export async function declareHandler(core: Core, handler: JobDefinition | undefined): Promise<void> {
  if (handler === undefined) return
  const { queue, priority, retry } = handler
  const text = JSON.stringify({ queue, priority, attempts: retry.attempts, crashes: retry.crashes })
  await core.connection.persist('declare the handler of dead letters', (store) =>
    store.notes.put(HANDLER_KIND, HANDLER, text, null),
  )
}

/** As much of its definition as an enqueue needs: whoever leads need not have it. */
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
    const queues = await call(this.#core, 'count dead letters', (store) => store.admin.queues())
    const counts = new Map(queues.map(({ queue, counts: { dead } }) => [queue, dead]))
    // What was before this process led is no news.
    const before = this.#before ?? counts
    this.#before = counts
    for (const [queue, dead] of counts) {
      const grown = dead - (before.get(queue) ?? 0)
      if (grown > 0) events.emit('deadletters.grew', { queue, grown, dead, overMs })
    }
  }
}

export class HandingOver {
  readonly #core: Core
  /** Handed over lately, with the time they failed: what the overlap shows again. */
  #recent = new Map<string, number>()

  constructor(core: Core) {
    this.#core = core
  }

  async look(): Promise<void> {
    const core = this.#core
    const [handler] = await call(core, 'look for a handler', (store) => store.notes.list(HANDLER_KIND))
    if (handler === undefined) return
    const definition = readHandler(core, handler.text)
    const cursor = await this.#cursor()
    let newest = cursor
    let after: JobId | null = null
    do {
      const query = {
        states: ['dead'] as const,
        finishedFrom: cursor - OVERLAP_MS,
        limit: MAX_BATCH,
        after,
      }
      const page: Awaited<ReturnType<Store['admin']['list']>> = await call(
        core,
        'read dead letters',
        (store) => store.admin.list(query),
      )
      newest = Math.max(newest, await this.#hand(page.jobs, definition))
      after = page.next
    } while (after !== null)
    this.#forget(newest - OVERLAP_MS)
    if (newest > cursor) await this.#moveTo(newest)
  }

  /** Enqueues a job for each that is new; resolves to when the newest failed. */
  async #hand(jobs: readonly JobRecord[], definition: JobDefinition): Promise<number> {
    let newest = 0
    const items = jobs.flatMap((job) => {
      if (job.state !== 'dead') return []
      const { id, name, finishedAt: failedAt } = job
      newest = Math.max(newest, failedAt)
      const key = `${id} ${failedAt}`
      // A handler that fails for good is not handed to itself.
      if (name === DEAD_LETTER_JOB || this.#recent.has(key)) return []
      this.#recent.set(key, failedAt)
      return [{ definition, input: { id, failedAt }, options: { unique: { key, for: REMEMBERED } as const } }]
    })
    try {
      await this.#core.enqueuer.together(items)
    } catch (error) {
      for (const { options } of items) this.#recent.delete(options.unique.key)
      throw error
    }
    return newest
  }

  #forget(beforeMs: number): void {
    for (const [key, failedAt] of this.#recent) if (failedAt < beforeMs) this.#recent.delete(key)
  }

  /** A handler that is the first of all is told of what fails from now on. */
  async #cursor(): Promise<number> {
    const notes = await call(this.#core, 'read the cursor', (store) => store.notes.list(CURSOR_KIND))
    const stored = Number(notes.find(({ id }) => id === CURSOR)?.text)
    if (Number.isFinite(stored)) return stored
    const now = this.#core.clock.now()
    await this.#moveTo(now)
    return now
  }

  async #moveTo(timeMs: number): Promise<void> {
    await call(this.#core, 'move the cursor', (store) =>
      store.notes.put(CURSOR_KIND, CURSOR, String(timeMs), null),
    )
  }
}

function call<T>(core: Core, doing: string, work: (store: Store) => Promise<T>): Promise<T> {
  return core.connection.call(doing, work, DUTY_TIMEOUT_MS)
}
