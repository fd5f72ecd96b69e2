/** S18: what a lost worker had started is counted as a crash of the job; rescue releases only what was never started. */
import type { HistoryEvent, MoveEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

export class Suspects implements Rule {
  readonly name = 'S18'
  readonly sees = ['run', 'move'] as const
  readonly #world: World
  /** The newest token that each job was started under, and the start. */
  readonly #started = new Map<string, { readonly token: number; readonly event: HistoryEvent }>()

  constructor(world: World) {
    this.#world = world
  }

  on(event: HistoryEvent): void {
    if (event.type === 'run') {
      if (event.what === 'start') this.#started.set(event.job, { token: event.token, event })
    } else if (event.type === 'move') {
      if (event.by === 'rescue') this.#rescued(event)
      if (event.to === null) this.#started.delete(event.job)
    }
  }

  #rescued(event: MoveEvent): void {
    const { job } = this.#world
    const started = this.#started.get(event.job)
    if (job === undefined || started === undefined || started.token !== job.token) return
    if (event.crashes > job.crashes) return
    this.#world.report('S18', event.job, 'its worker was lost after starting it, and no crash was counted', [
      started.event,
      event,
    ])
  }

  end(): void {}
}
