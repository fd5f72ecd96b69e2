/**
 * S3: one live lease a job by the store's clock. So a running job is not claimed, a lease is not taken away before it has
 * expired, and not while the answer that grants it still travels; and a worker starts a job once a lease, and only while
 * it can be sure of it.
 */
import type { Job } from '../book.ts'
import type { AnswerEvent, HistoryEvent, InvokeEvent, MoveEvent, RunEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

export function oneLease(world: World): Rule {
  const { calls, fleet } = world

  function on(event: HistoryEvent): void {
    if (event.type === 'move') {
      if (event.by === 'claim') granted(event)
      else if (event.by === 'rescue') rescued(event)
    } else if (event.type === 'run') {
      if (event.what === 'start' && world.job !== undefined) started(event, world.job)
    } else if (event.type === 'answer') {
      if (world.invoked !== undefined) answered(event, world.invoked)
    }
  }

  function granted(event: MoveEvent): void {
    const { job } = world
    if (job?.state === 'running') {
      const text = `claimed under token ${event.token} while the lease of token ${job.token} stands`
      world.report('S3', event.job, text, [job.lastMove, event])
    }
    const worker = event.worker === null ? undefined : fleet.workers.get(event.worker)
    if (worker !== undefined && worker.exact && worker.goneAt !== Infinity) {
      world.report('S3', event.job, `claimed for worker ${worker.id}, which the store no longer has`, [event])
    }
  }

  function rescued(event: MoveEvent): void {
    const worker = event.worker === null ? undefined : fleet.workers.get(event.worker)
    if (worker === undefined || event.t >= worker.expiresEarliest) return
    const left = worker.expiresEarliest - event.t
    const text = `rescued from worker ${worker.id}, whose lease had another ${left} ms to go`
    world.report('S3', event.job, text, [world.job?.lastMove ?? null, event])
  }

  function started(event: RunEvent, job: Job): void {
    if (job.startedToken === event.token) {
      world.report('S3', event.job, `started twice under token ${event.token}`, [event])
    }
    const worker = fleet.workers.get(event.worker)
    if (worker === undefined || event.t <= worker.sentAt + worker.leaseMs) return
    const over = event.t - worker.sentAt - worker.leaseMs
    const text = `started ${over} ms after the last renewal that worker ${worker.id} can be sure of was over`
    world.report('S3', event.job, text, [job.lastMove, event])
  }

  function answered(event: AnswerEvent, invoked: InvokeEvent): void {
    for (const { id, token, job } of world.leased) {
      if (job === undefined) continue
      if (world.moves) {
        if (job.strangerToken !== token) continue
        const text = `token ${token} was released as a stranger's while its answer was on its way`
        world.report('S3', id, text, [invoked, job.lastMove, event])
      } else if (token > job.seenToken && job.seenToken > 0 && !mayHaveEnded(job)) {
        const text = `claimed under token ${token} although nothing ended the lease of token ${job.seenToken}`
        world.report('S3', id, text, [invoked, event])
      }
    }
  }

  function mayHaveEnded(job: Job): boolean {
    return job.mayHaveEnded || world.clients.strangers.has(job.seenToken) || calls.possible('rescue')
  }

  return { name: 'S3', sees: ['move', 'run', 'answer'], on, end() {} }
}
