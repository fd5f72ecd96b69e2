/**
 * Which workers there are: those of this process, and a note about each in the store, so that every process of a fleet
 * can list all of them. Notes are a courtesy: one that cannot be written or removed disturbs nobody, and those of a
 * process that vanished go by themselves.
 */
import type { Core } from '../core/core.ts'
import type { Notes } from '../stores/store.ts'
import { Backlog } from './backlog.ts'
import type { LoopLag } from './loop-lag.ts'
import type { Member } from './member.ts'
import { inOrder, readNote, writeNote, type NotedStatus, type WorkerStatus } from './status.ts'

const KIND = 'worker'
/** Two renewals may be lost. */
const TTL_ROUNDS = 3
const NOTE_TIMEOUT_MS = 2_000

export class Roster {
  readonly #core: Core
  readonly #ttlMs: number
  readonly #lag: LoopLag
  /** Each with the newest write of its note. */
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
    const writing = before.then(() =>
      this.#tell('list a worker', (notes) => notes.put(KIND, member.noteId, text, this.#ttlMs)),
    )
    this.#members.set(member, writing)
    return writing
  }

  /** Never rejects. A write that is under way ends first: it would bring the note back. */
  async remove(member: Member): Promise<void> {
    const writing = this.#members.get(member)
    if (writing === undefined) return
    this.#members.delete(member)
    await writing
    await this.#tell('take a worker off the list', (notes) => notes.put(KIND, member.noteId, null, null))
  }

  /** Every worker of the fleet; those of this process as they are now. */
  async status(): Promise<readonly WorkerStatus[]> {
    const { connection } = this.#core
    const [noted, backlog] = await Promise.all([
      connection.persist('list the workers', (store) => store.notes.list(KIND)),
      Backlog.read(this.#core),
    ])
    const own = new Map(this.members.map((member) => [member.noteId, member]))
    const others = noted.flatMap(({ id, text }): NotedStatus[] => {
      const status = own.has(id) ? null : readNote(text)
      return status === null ? [] : [status]
    })
    const rows = [...others, ...this.members.map((member) => member.status(this.#lag.worstMs))]
    return inOrder(rows.map((row) => ({ ...row, queueSize: backlog.in(row.queues).size })))
  }

  async #tell(doing: string, write: (notes: Notes) => Promise<unknown>): Promise<void> {
    await this.#core.connection
      .call(doing, (store) => write(store.notes), NOTE_TIMEOUT_MS)
      .catch(() => undefined)
  }
}
