/**
 * Settles that a store refuses because of the data in them. A call carries the settles of many jobs, and the store writes
 * all of them or none. If one holds a value that the store can never keep, the call is split until that settle stands
 * alone. Its job becomes a dead letter that says why; all others are settled as they should be.
 */
import type { Core } from '../core/core.ts'
import { HoldfastError, isRefusal } from '../errors.ts'
import { attemptError } from '../job/failure.ts'
import type { Settlement } from '../job/settlement.ts'
import { toError } from '../std/text.ts'
import type { SettleAnswer, SettleRequest } from '../stores/store.ts'
import { recordOf, type PendingSettle } from './settling.ts'

export interface SplitAnswer {
  /** What was written in the end, and what the store answered. */
  readonly settled: readonly { readonly pending: PendingSettle; readonly answer: SettleAnswer }[]
  /** Settles without an answer, because the store failed meanwhile: to be sent again. */
  readonly left: readonly PendingSettle[]
  /** Why some are left. */
  readonly failure: unknown
  /** Even their dead letters were refused. They are tried again later, and not together with others. */
  readonly stuck: readonly PendingSettle[]
  /** Why some are stuck. */
  readonly refusal: unknown
}

type Send = (requests: readonly SettleRequest[]) => Promise<readonly SettleAnswer[]>

/** Sends settles that were refused together in smaller and smaller calls. */
export async function settleApart(
  core: Core,
  settles: readonly PendingSettle[],
  send: Send,
): Promise<SplitAnswer> {
  const settled: { readonly pending: PendingSettle; readonly answer: SettleAnswer }[] = []
  const stuck: PendingSettle[] = []
  let refusal: unknown = null
  const groups = halves(settles)
  for (let group = groups.shift(); group !== undefined; group = groups.shift()) {
    try {
      const answers = await send(group.map(({ request }) => request))
      group.forEach((pending, index) => settled.push({ pending, answer: answers[index] as SettleAnswer }))
    } catch (error) {
      const [first] = group
      if (!isRefusal(error) || first === undefined)
        return { settled, left: [group, ...groups].flat(), failure: error, stuck, refusal }
      refusal = error
      if (group.length > 1) groups.unshift(...halves(group))
      else if (first.refused === true) stuck.push(first)
      else groups.unshift([settleAsRefused(core, first, toError(error))])
    }
  }
  return { settled, left: [], failure: null, stuck, refusal }
}

function halves(settles: readonly PendingSettle[]): PendingSettle[][] {
  const middle = Math.ceil(settles.length / 2)
  return [settles.slice(0, middle), settles.slice(middle)].filter((half) => half.length > 0)
}

/** The longest run that every store can keep, in case the refused value is this number. */
const LONGEST_RUN_MS = 2 ** 31 - 1

/**
 * Replaces a settle that the store refused by a dead letter that says so, in characters that any store takes. The handler
 * may have done its work, so running it again would be wrong as well as useless.
 */
function settleAsRefused(core: Core, pending: PendingSettle, cause: Error): PendingSettle {
  const { attempt, request } = pending
  const runMs = Math.min(request.runMs, LONGEST_RUN_MS)
  // The job is completed: only the number can have been refused.
  if (request.settlement.type === 'confirm')
    return { ...pending, refused: true, request: { ...request, runMs } }
  const what = request.settlement.type === 'completed' ? 'the result of this job' : 'how this attempt ended'
  const why = cause.message.replace(/[^\x20-\x7e]/g, '?')
  const thrown = new HoldfastError('HF_STORE_REFUSED', `The store cannot keep ${what}. ${why}`, { cause })
  const error = attemptError(thrown, attempt.job.attempt, 'permanent')
  const settlement: Settlement = { type: 'dead', error }
  return {
    attempt,
    refused: true,
    outcome: { type: 'failed', thrown, kind: 'permanent' },
    request: {
      ...request,
      settlement,
      runMs,
      forget: !core.queues.keepsDead(attempt.job.queue),
      record: recordOf(attempt, settlement, runMs),
    },
  }
}
