/**
 * The store calls of maintenance. Duties repeat, so every call is sent once, within a short time: a call whose answer
 * is lost must hold up neither the next run nor a stop for long.
 */
import type { JobId, WorkerId } from '../job/ids.ts'
import type { JobRecord, NewJob } from '../job/record.ts'
import {
  MAX_BATCH,
  type ChangeAnswer,
  type DeadGroupPage,
  type JobPage,
  type ListQuery,
  type Note,
  type QueueStatus,
  type RescueAnswer,
  type Retention,
  type ScheduleList,
  type Schedules,
  type ScheduleSpec,
  type Store,
  type Upkeep,
} from '../stores/store.ts'
import type { Connection } from './connection.ts'
import { DEAD_LETTER_CURSOR, DEAD_LETTER_HANDLER, STORE_CLOCK } from './notes.ts'

const TIMEOUT_MS = 3_000

export class UpkeepCalls {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  promote(limit: number): ReturnType<Upkeep['promote']> {
    return this.#once('promote due jobs', (store) => store.upkeep.promote(limit))
  }

  rescue(limit: number): Promise<RescueAnswer> {
    return this.#once('rescue lost jobs', (store) => store.upkeep.rescue(limit))
  }

  prune(retention: Retention, limit: number): ReturnType<Upkeep['prune']> {
    return this.#once('prune finished jobs', (store) => store.upkeep.prune(retention, limit))
  }

  /** An answer that takes half a term is of no use. */
  lead(candidate: WorkerId, ttlMs: number): Promise<boolean> {
    return this.#once('elect a leader', (store) => store.upkeep.lead(candidate, ttlMs), ttlMs / 2)
  }

  async resign(candidate: WorkerId, ttlMs: number): Promise<void> {
    await this.#once('resign', (store) => store.upkeep.lead(candidate, 0), ttlMs / 2)
  }

  // ── schedules ──────────────────────────────────────────────────────────────

  schedules(): Promise<ScheduleList> {
    return this.#once('read the schedules', (store) => store.schedules.list())
  }

  async moveSchedule(id: string, schedule: ScheduleSpec): Promise<void> {
    await this.#once(`move schedule "${id}" on`, (store) => store.schedules.put(id, schedule))
  }

  fire(id: string, tick: number, nextTick: number | null, job: NewJob): ReturnType<Schedules['fire']> {
    return this.#once(`fire schedule "${id}"`, (store) => store.schedules.fire(id, tick, nextTick, job))
  }

  // ── jobs ───────────────────────────────────────────────────────────────────

  job(id: JobId): Promise<JobRecord | null> {
    return this.#once('look at a job', (store) => store.admin.get(id))
  }

  queues(): Promise<readonly QueueStatus[]> {
    return this.#once('count jobs', (store) => store.admin.queues())
  }

  deadLetters(query: Omit<ListQuery, 'states'>): Promise<JobPage> {
    return this.#once('read dead letters', (store) => store.admin.list({ ...query, states: ['dead'] }))
  }

  deadGroups(after: JobId | null): Promise<DeadGroupPage> {
    return this.#once('group dead letters', (store) => store.admin.deadGroups({}, MAX_BATCH, after))
  }

  discardDead(ids: readonly JobId[]): Promise<ChangeAnswer> {
    const filter = { ids, states: ['dead'] } as const
    return this.#once('drop dead jobs', (store) =>
      store.admin.change(filter, { type: 'discard' }, ids.length, null),
    )
  }

  // ── notes ──────────────────────────────────────────────────────────────────

  /** The parts of the dead-letter handler's jobs; undefined if there is none. */
  deadLetterHandler(): Promise<string | undefined> {
    return this.#note('look for a handler of dead letters', DEAD_LETTER_HANDLER)
  }

  deadLetterCursor(): Promise<string | undefined> {
    return this.#note('read the cursor of dead letters', DEAD_LETTER_CURSOR)
  }

  async moveDeadLetterCursor(text: string): Promise<void> {
    const { kind, id } = DEAD_LETTER_CURSOR
    await this.#once('move the cursor of dead letters', (store) => store.notes.put(kind, id, text, null))
  }

  /** The newest reading of the store's clock by a leader. */
  notedTime(): Promise<string | undefined> {
    return this.#note("read the newest time of the store's clock", STORE_CLOCK)
  }

  async noteTime(text: string): Promise<void> {
    const { kind, id } = STORE_CLOCK
    await this.#once("note the store's time", (store) => store.notes.put(kind, id, text, null))
  }

  async #note(doing: string, { kind, id }: { readonly kind: string; readonly id: string }) {
    const notes: readonly Note[] = await this.#once(doing, (store) => store.notes.list(kind))
    return notes.find((note) => note.id === id)?.text
  }

  #once<T>(doing: string, send: (store: Store) => Promise<T>, withinMs = TIMEOUT_MS): Promise<T> {
    return this.#connection.once({ doing, deadline: this.#connection.deadline(withinMs), send })
  }
}
