/**
 * S3: one live lease a job by the store's clock. So a running job is not claimed, a lease is not taken away before it has
 * expired, and not while the answer that grants it still travels; and a worker starts a job once a lease, and only while
 * it can be sure of it.
 */
import type { Job } from '../book.ts'
import type { AnswerEvent, HistoryEvent, InvokeEvent, MoveEvent, RunEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

export class OneLease implements Rule {
  readonly name = 'S3'
  readonly sees = ['move', 'run', 'answer'] as const
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  on(event: HistoryEvent): void {
    if (event.type === 'move') {
      if (event.by === 'claim') this.#granted(event)
      else if (event.by === 'rescue') this.#rescued(event)
    } else if (event.type === 'run') {
      if (event.what === 'start' && this.#world.job !== undefined) this.#started(event, this.#world.job)
    } else if (event.type === 'answer') {
      if (this.#world.invoked !== undefined) this.#answered(event, this.#world.invoked)
    }
  }

  #granted(event: MoveEvent): void {
    const { job } = this.#world
    if (job?.state === 'running') {
      const text = `claimed under token ${event.token} while the lease of token ${job.token} stands`
      this.#world.report('S3', event.job, text, [job.lastMove, event])
    }
    const worker = event.worker === null ? undefined : this.#world.fleet.workers.get(event.worker)
    if (worker !== undefined && worker.exact && worker.goneAt !== Infinity) {
      this.#world.report('S3', event.job, `claimed for worker ${worker.id}, which the store no longer has`, [
        event,
      ])
    }
  }

  #rescued(event: MoveEvent): void {
    const worker = event.worker === null ? undefined : this.#world.fleet.workers.get(event.worker)
    if (worker === undefined || event.t >= worker.expiresEarliest) return
    const left = worker.expiresEarliest - event.t
    const text = `rescued from worker ${worker.id}, whose lease had another ${left} ms to go`
    this.#world.report('S3', event.job, text, [this.#world.job?.lastMove ?? null, event])
  }

  #started(event: RunEvent, job: Job): void {
    if (job.startedToken === event.token) {
      this.#world.report('S3', event.job, `started twice under token ${event.token}`, [event])
    }
    const worker = this.#world.fleet.workers.get(event.worker)
    if (worker === undefined || event.t <= worker.sentAt + worker.leaseMs) return
    const over = event.t - worker.sentAt - worker.leaseMs
    const text = `started ${over} ms after the last renewal that worker ${worker.id} can be sure of was over`
    this.#world.report('S3', event.job, text, [job.lastMove, event])
  }

  #answered(event: AnswerEvent, invoked: InvokeEvent): void {
    for (const { id, token, job } of this.#world.leased) {
      if (job === undefined) continue
      if (this.#world.moves) {
        if (job.undeliveredToken !== token) continue
        const text = `token ${token} was released as undelivered while its answer was on its way`
        this.#world.report('S3', id, text, [invoked, job.lastMove, event])
      } else if (token > job.seenToken && job.seenToken > 0 && !this.#mayHaveEnded(job)) {
        const text = `claimed under token ${token} although nothing ended the lease of token ${job.seenToken}`
        this.#world.report('S3', id, text, [invoked, event])
      }
    }
  }

  #mayHaveEnded(job: Job): boolean {
    return (
      job.mayHaveEnded ||
      this.#world.clients.undelivered.has(job.seenToken) ||
      this.#world.calls.possible('rescue')
    )
  }

  end(): void {}
}
