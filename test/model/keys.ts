/** Unique keys in the model: which job must hold a key, and which may if the contract leaves it open. */
import type { JobId } from '../../src/job/ids.ts'
import type { NewJob } from '../../src/job/record.ts'
import { isFinal, isWaiting, type JobState } from '../../src/job/states.ts'
import type { UniqueClaim } from '../../src/job/unique.ts'

/** What holding a key depends on. */
interface World {
  readonly now: number
  readonly jobs: ReadonlyMap<JobId, { readonly state: JobState }>
}

interface Holder {
  readonly id: JobId
  readonly rule: UniqueClaim['hold']
  /** For a key held for a time: certainly held until the first, certainly free from the second. */
  readonly heldUntil: number
  readonly freeFrom: number
  /** Held while ready: claimed since, so that a return to the queue may or may not take it again. */
  claimed: boolean
}

export interface Holding {
  /** This job holds the key. */
  readonly must: JobId | null
  /** This job may hold it. */
  readonly may: JobId | null
}

const NOBODY: Holding = { must: null, may: null }

export class ModelKeys {
  readonly #world: World
  readonly #holders = new Map<string, Holder>()

  constructor(world: World) {
    this.#world = world
  }

  holding(key: string): Holding {
    const holder = this.#holders.get(key)
    if (holder === undefined) return NOBODY
    const { id, rule } = holder
    if ('forMs' in rule) {
      if (this.#world.now < holder.heldUntil) return { must: id, may: null }
      return this.#world.now < holder.freeFrom ? { must: null, may: id } : NOBODY
    }
    const state = this.#world.jobs.get(id)?.state
    if (state === undefined) return NOBODY
    if (rule.while === 'unfinished') return isFinal(state) ? NOBODY : { must: id, may: null }
    if (!isWaiting(state)) return NOBODY
    return holder.claimed ? { must: null, may: id } : { must: id, may: null }
  }

  /** A new job, or one that replaced its holder, holds the key by its own rule from now on. */
  take({ id, unique }: Pick<NewJob, 'id' | 'unique'>, earliestEnd = Infinity): void {
    if (unique === null) return
    const end = 'forMs' in unique.hold ? this.#world.now + unique.hold.forMs : Infinity
    const heldUntil = Math.min(earliestEnd, end)
    this.#holders.set(unique.key, { id, rule: unique.hold, heldUntil, freeFrom: end, claimed: false })
  }

  /** Replaced by a job with the same rule: whether its time starts anew is not said. */
  retake(holder: JobId, unique: UniqueClaim): void {
    const before = this.#holders.get(unique.key)
    this.take({ id: holder, unique }, before?.id === holder ? before.heldUntil : this.#world.now)
  }

  claimed({ id, unique }: Pick<NewJob, 'id' | 'unique'>): void {
    const holder = unique === null ? undefined : this.#holders.get(unique.key)
    if (holder?.id === id) holder.claimed = true
  }
}
