/**
 * `commit` of a handler: its writes and the completion of its job in one transaction. The worker's settle only confirms
 * it. If the store finds the job open, it has lost the commit and its effect: the job runs again. So there is one
 * completion and one set of effects, even if this process or the store crashes in between.
 */
import type { Core } from '../core/core.ts'
import { HoldfastError } from '../errors.ts'
import type { JobDefinition } from '../job/definition.ts'
import { checkOutput, encodeResult } from '../job/payload.ts'
import type { CompletedSettlement } from '../stores/store.ts'
import type { Attempt } from './attempt.ts'

export async function commitAttempt<R>(
  core: Core,
  attempt: Attempt,
  definition: JobDefinition,
  write: (tx: never) => Promise<R>,
): Promise<R> {
  if (attempt.committed !== undefined) throw twice(attempt)
  const { worker, token, position } = attempt
  const { insideCommit } = core.connection
  insideCommit.refuse('commit again')
  const runMs = (): number => attempt.runMs(core.clock.monotonicMs())
  // If the store gives up on `write`, it keeps running, but its result no longer counts.
  let isGivenUp = false
  let done: { readonly value: R; readonly settlement: CompletedSettlement } | undefined
  const request = { worker, token, position, runMs, forget: core.forgets }
  const send = core.store.commit(request, async (tx) => {
    attempt.commits = false
    refuseWhenOver(attempt)
    const value = await insideCommit.run(() => write(tx as never))
    const { json, dropped } = encodeResult(await checkOutput(definition.output, value, definition.name))
    if (isGivenUp) throw over()
    // A handler whose signal was aborted meanwhile has another outcome.
    refuseWhenOver(attempt)
    const settlement: CompletedSettlement = { type: 'completed', result: json, resultDropped: dropped }
    done = { value, settlement }
    attempt.commits = true
    return settlement
  })
  await send.catch((error: unknown) => {
    isGivenUp = true
    attempt.commits = false
    throw error
  })
  if (done === undefined) throw new Error('The store committed without asking what.')
  attempt.committed = done.settlement
  return done.value
}

function refuseWhenOver(attempt: Attempt): void {
  if (attempt.abort.reason !== undefined) throw attempt.abort.reason
  if (attempt.phase === 'running') return
  throw over()
}

function over(): HoldfastError {
  return new HoldfastError('HF_LEASE_LOST', 'This attempt has ended: it can no longer commit.')
}

function twice({ job }: Attempt): HoldfastError {
  return new HoldfastError(
    'HF_COMMITTED',
    `Job "${job.name}" has committed already, and is completed by that.`,
  )
}
