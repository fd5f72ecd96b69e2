/** The waiting jobs of all queues when the store was asked, once for all workers. */
import type { Core } from '../core/core.ts'
import type { QueueStatus } from '../stores/store.ts'

/** The waiting jobs of one worker's queues. */
export interface Waiting {
  /** Its queues that have ready jobs. */
  readonly queues: readonly string[]
  readonly size: number
  /**
   * How long the oldest claimable job has been ready; jobs of paused queues are not claimable. Null if there is none.
   */
  readonly oldestMs: number | null
}

export class Backlog {
  readonly #queues: ReadonlyMap<string, QueueStatus>
  readonly #now: number

  constructor(queues: readonly QueueStatus[], now: number) {
    this.#queues = new Map(queues.map((status) => [status.queue, status]))
    this.#now = now
  }

  static async read(core: Core, timeoutMs?: number): Promise<Backlog> {
    const queues = await core.store.queues(timeoutMs)
    return new Backlog(queues, core.clock.now())
  }

  in(names: readonly string[]): Waiting {
    const waiting = names
      .flatMap((name) => this.#queues.get(name) ?? [])
      .filter(({ counts }) => counts.ready > 0)
    const since = waiting.flatMap(({ paused, oldestReadyAt }) =>
      paused || oldestReadyAt === null ? [] : [oldestReadyAt],
    )
    return {
      queues: waiting.map(({ queue }) => queue),
      size: waiting.reduce((sum, { counts }) => sum + counts.ready, 0),
      oldestMs: since.length === 0 ? null : Math.max(0, this.#now - Math.min(...since)),
    }
  }
}
