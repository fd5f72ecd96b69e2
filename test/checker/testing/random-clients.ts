/** What clients of the reference ask for: mostly enqueues, now and then a cancel, a pause, a replay … */
import type { Call, EnqueuedJob, UniqueSpec } from '../history.ts'
import type { Chance } from './random.ts'

export const QUEUES = ['q', 'r']

/** Cancels pick among so many of the newest jobs. */
const REMEMBERED = 50

export class RandomClients {
  readonly #chance: Chance
  readonly #ids: string[] = []
  #made = 0

  constructor(chance: Chance) {
    this.#chance = chance
  }

  next(): Call {
    const dice = this.#chance.float()
    if (dice < 0.85 || this.#ids.length === 0) return this.#enqueue()
    if (dice < 0.9) return { kind: 'cancel', job: this.#chance.pick(this.#ids) }
    if (dice < 0.92) return { kind: 'pause', queue: 'r' }
    if (dice < 0.97) return { kind: 'resume', queue: 'r' }
    return { kind: 'change', action: this.#chance.happens(0.8) ? 'replay' : 'discard', jobs: null }
  }

  #enqueue(): Call {
    const jobs = Array.from({ length: 1 + this.#chance.below(3) }, () => this.#newJob())
    for (const { id } of jobs) {
      if (this.#ids.length < REMEMBERED) this.#ids.push(id)
      else this.#ids[this.#chance.below(REMEMBERED)] = id
    }
    return { kind: 'enqueue', flush: `f${this.#made++}`, jobs }
  }

  #newJob(): EnqueuedJob {
    const number = this.#made++
    return {
      id: `j${String(number).padStart(9, '0')}`,
      name: 'job',
      queue: this.#chance.pick(QUEUES),
      priority: 5,
      headStartMs: this.#chance.below(3) * 500,
      payload: `{"n":${number}}`,
      due: { inMs: this.#chance.happens(0.2) ? this.#chance.below(500) : 0 },
      unique: this.#chance.happens(0.2) ? this.#unique() : null,
      intent: `i${number}`,
    }
  }

  #unique(): UniqueSpec {
    return {
      key: `k${this.#chance.below(5)}`,
      hold: this.#chance.pick(['ready', 'unfinished', 200] as const),
      onConflict: this.#chance.pick(['ignore', 'replace', 'reschedule'] as const),
    }
  }
}
