/**
 * Who does the upkeep. One candidate leads at a time; an election that fails for any reason means "not the leader".
 * An error that is no outage is told as `duty.failed`: otherwise nobody would know why nobody leads.
 * Nothing depends on there being only one: every duty is an atomic step that is harmless when two take it.
 */
import type { Core } from '../core/core.ts'
import type { WorkerId } from '../job/ids.ts'

export class Leader {
  readonly #core: Core
  readonly #candidate: WorkerId
  readonly #ttlMs: number
  #leadsUntilMs = 0
  #wasLeading = false
  /** Since when every election was answered in time. */
  #seenSinceMs: number | undefined
  #lastSeenMs = 0

  constructor(core: Core, ttlMs: number) {
    this.#core = core
    this.#candidate = core.ids.worker()
    this.#ttlMs = ttlMs
  }

  get leads(): boolean {
    return this.#now() < this.#leadsUntilMs
  }

  /** How long the store has been reachable without interruption. */
  get seenForMs(): number {
    const brokenOff = this.#now() - this.#lastSeenMs > this.#ttlMs
    return this.#seenSinceMs === undefined || brokenOff ? 0 : this.#now() - this.#seenSinceMs
  }

  /** How often to stand for election: twice per term, so that one lost call has no effect. */
  get intervalMs(): number {
    return this.#ttlMs / 3
  }

  async elect(): Promise<void> {
    const sentMs = this.#now()
    try {
      const won = await this.#core.store.upkeep.lead(this.#candidate, this.#ttlMs)
      this.#noteSeen(sentMs)
      // Counted from when the call was sent, less a margin: by the store's clock the term may have begun that early.
      this.#leadsUntilMs = won ? sentMs + this.#ttlMs * 0.9 : 0
    } catch (error) {
      this.#core.connection.report('elect a leader', error)
      this.#seenSinceMs = undefined
      this.#leadsUntilMs = 0
    }
    this.#tell()
  }

  async resign(): Promise<void> {
    if (!this.leads) return
    this.#leadsUntilMs = 0
    await this.#core.store.upkeep
      .resign(this.#candidate, this.#ttlMs)
      .catch((error: unknown) => this.#core.connection.report('resign', error))
  }

  #noteSeen(sentMs: number): void {
    if (this.#seenSinceMs === undefined || sentMs - this.#lastSeenMs > this.#ttlMs) this.#seenSinceMs = sentMs
    this.#lastSeenMs = this.#now()
  }

  #tell(): void {
    if (this.leads === this.#wasLeading) return
    this.#wasLeading = this.leads
    const event = { candidate: this.#candidate as string }
    if (this.#wasLeading) this.#core.events.emit('leader.elected', event)
    else this.#core.events.emit('leader.lost', event)
  }

  #now(): number {
    return this.#core.clock.monotonicMs()
  }
}
