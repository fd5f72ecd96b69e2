/** Which job holds which unique key. A key depends on its holder's state, so that no finished job blocks a new one. */
import type { UniqueClaim } from '../../job/unique.ts'
import type { JobId } from '../../job/ids.ts'
import { isFinal, isWaiting } from '../../job/states.ts'
import type { Entry } from './entry.ts'

interface Holder {
  readonly id: JobId
  /** Set if the key is held for a time, regardless of the job's state. */
  readonly untilMs: number | null
}

export class UniqueKeys {
  readonly #holders = new Map<string, Holder>()

  holderOf(key: string, nowMs: number): JobId | undefined {
    const holder = this.#holders.get(key)
    if (holder === undefined) return undefined
    if (holder.untilMs !== null && holder.untilMs <= nowMs) {
      this.#holders.delete(key)
      return undefined
    }
    return holder.id
  }

  take(claim: UniqueClaim, id: JobId, nowMs: number): void {
    this.#holders.set(claim.key, { id, untilMs: 'forMs' in claim.hold ? nowMs + claim.hold.forMs : null })
  }

  /** Called after each move of a job: frees the key when the job's new state no longer holds it. */
  afterMove(entry: Entry): void {
    const { unique } = entry.job
    if (unique === null || 'forMs' in unique.hold) return
    const holds = unique.hold.while === 'ready' ? isWaiting(entry.state) : !isFinal(entry.state)
    if (!holds && this.#holders.get(unique.key)?.id === entry.job.id) this.#holders.delete(unique.key)
  }

  prune(nowMs: number): void {
    for (const [key, holder] of this.#holders) {
      if (holder.untilMs !== null && holder.untilMs <= nowMs) this.#holders.delete(key)
    }
  }
}
