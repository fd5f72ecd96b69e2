/**
 * The workers of this holdfast(), which are notified of a cancel or a pause directly: they drop jobs that they have not
 * started before the caller continues. Other workers learn of it through the store.
 */

/** `running`: the handler runs and its signal has aborted. `dropped`: it never starts. `unknown`: not held here. */
export type LocalCancel = 'running' | 'dropped' | 'unknown'

export interface LocalWorker {
  /** The store has written that this job is to be cancelled. */
  cancelled(id: string, reason: string | null): LocalCancel
  /** The store has written that this queue is paused. */
  paused(queue: string): void
}

export class LocalWorkers {
  readonly #workers = new Set<LocalWorker>()

  /** Returns a function that removes the worker. */
  join(worker: LocalWorker): () => void {
    this.#workers.add(worker)
    return () => void this.#workers.delete(worker)
  }

  cancelled(id: string, reason: string | null): LocalCancel {
    // Every worker is notified: one with a claim in flight must remember it.
    const answers = [...this.#workers].map((worker) => worker.cancelled(id, reason))
    return answers.find((answer) => answer !== 'unknown') ?? 'unknown'
  }

  paused(queue: string): void {
    for (const worker of this.#workers) worker.paused(queue)
  }
}
