/**
 * Cancels and pauses that were heard while a claim was under way. They may be about jobs that its answer brings, and a
 * claim that is sent later knows of them, so they are kept until no earlier claim is left.
 */
import type { ClaimedJob } from '../job/record.ts'
import type { CancelNotice, Lease } from '../stores/store.ts'

export type News =
  | { readonly type: 'cancelled'; readonly reason: string | null }
  | { readonly type: 'paused' }

export class EarlyNews {
  #underWay = 0
  readonly #places = new Map<string, string | null>()
  readonly #jobs = new Map<string, string | null>()
  /** When each pause was heard. */
  readonly #queues = new Map<string, number>()

  claimSent(): void {
    this.#underWay++
  }

  /** To be called once what the claim brought has been judged. */
  claimLanded(): void {
    if (--this.#underWay > 0) return
    this.#places.clear()
    this.#jobs.clear()
    this.#queues.clear()
  }

  cancelledAt({ token, position, reason }: CancelNotice): void {
    if (this.#underWay > 0) this.#places.set(`${token} ${position}`, reason)
  }

  cancelled(id: string, reason: string | null): void {
    if (this.#underWay > 0) this.#jobs.set(id, reason)
  }

  paused(queue: string, heardMs: number): void {
    if (this.#underWay > 0) this.#queues.set(queue, heardMs)
  }

  /** What is known of a job that a claim brought which was sent at this time; null for nothing. */
  about({ token, queue }: Lease, position: number, { id }: ClaimedJob, sentMs: number): News | null {
    if (this.#places.size === 0 && this.#jobs.size === 0 && this.#queues.size === 0) return null
    const place = `${token} ${position}`
    if (this.#places.has(place)) return { type: 'cancelled', reason: this.#places.get(place) ?? null }
    if (this.#jobs.has(id)) return { type: 'cancelled', reason: this.#jobs.get(id) ?? null }
    return (this.#queues.get(queue) ?? -Infinity) >= sentMs ? { type: 'paused' } : null
  }
}
