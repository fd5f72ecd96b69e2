/**
 * The fleet's workers: each process writes a note per worker to the store, so that every process can list all of them.
 * Notes are best effort: a failure to write or remove one has no other effect, and those of a vanished process expire.
 */
import type { Core } from '../core/core.ts'
import { Backlog } from './backlog.ts'
import type { LoopLag } from './loop-lag.ts'
import type { Member } from './member.ts'
import { inOrder, readNote, writeNote, type NotedStatus, type WorkerStatus } from './status.ts'

/** Two renewals may be lost. */
const TTL_ROUNDS = 3

export class Roster {
  readonly #core: Core
  readonly #ttlMs: number
  readonly #lag: LoopLag
  /** Each worker with the newest write of its note. */
  readonly #members = new Map<Member, Promise<void>>()

  constructor(core: Core, everyMs: number, lag: LoopLag) {
    this.#core = core
    this.#ttlMs = TTL_ROUNDS * everyMs
    this.#lag = lag
  }

  get members(): readonly Member[] {
    return [...this.#members.keys()]
  }

  add(member: Member): void {
    this.#members.set(member, Promise.resolve())
    void this.renew(member)
  }

  /** Never rejects. */
  renew(member: Member): Promise<void> {
    const before = this.#members.get(member)
    if (before === undefined) return Promise.resolve()
    const text = writeNote(member.status(this.#lag.worstMs))
    const { worker: calls } = this.#core.store
    const writing = before
      .then(() => calls.putStatus(member.noteId, text, this.#ttlMs))
      .catch((error: unknown) => this.#core.connection.report('list a worker', error))
    this.#members.set(member, writing)
    return writing
  }

  /** Never rejects. Waits for a write in progress, which would restore the note. */
  async remove(member: Member): Promise<void> {
    const writing = this.#members.get(member)
    if (writing === undefined) return
    this.#members.delete(member)
    await writing
    const { connection, store } = this.#core
    await store.worker
      .removeStatus(member.noteId)
      .catch((error: unknown) => connection.report('take a worker off the list', error))
  }

  /** Every worker of the fleet; those of this process with their current status. */
  async status(): Promise<readonly WorkerStatus[]> {
    const [noted, backlog] = await Promise.all([this.#core.store.workers(), Backlog.read(this.#core)])
    const own = new Map(this.members.map((member) => [member.noteId, member]))
    const others = noted.flatMap(({ id, text }): NotedStatus[] => {
      const status = own.has(id) ? null : readNote(text)
      return status === null ? [] : [status]
    })
    const rows = [...others, ...this.members.map((member) => member.status(this.#lag.worstMs))]
    return inOrder(rows.map((row) => ({ ...row, queueSize: backlog.in(row.queues).size })))
  }
}
