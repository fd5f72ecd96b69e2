/**
 * Cancels and pauses that arrive while a claim is in flight. They may concern jobs that its answer brings. A claim sent
 * later cannot bring such jobs, so the notices are kept until no earlier claim is left.
 */
import type { CancelNotice } from '../stores/store.ts'
import type { Attempt } from './attempt.ts'

export type EarlyNotice =
  | { readonly type: 'cancelled'; readonly reason: string | null }
  | { readonly type: 'paused' }

export class EarlyNotices {
  readonly #places = new Map<string, string | null>()
  readonly #jobs = new Map<string, string | null>()
  /** When each pause arrived. */
  readonly #queues = new Map<string, number>()

  cancelledAt({ token, position, reason }: CancelNotice): void {
    this.#places.set(`${token} ${position}`, reason)
  }

  cancelled(id: string, reason: string | null): void {
    this.#jobs.set(id, reason)
  }

  paused(queue: string, heardMs: number): void {
    this.#queues.set(queue, heardMs)
  }

  /** The notice about a job that a claim has brought; null for none. */
  about({ token, position, job, askedMs }: Attempt): EarlyNotice | null {
    const place = `${token} ${position}`
    if (this.#places.has(place)) return { type: 'cancelled', reason: this.#places.get(place) ?? null }
    if (this.#jobs.has(job.id)) return { type: 'cancelled', reason: this.#jobs.get(job.id) ?? null }
    return (this.#queues.get(job.queue) ?? -Infinity) >= askedMs ? { type: 'paused' } : null
  }
}
