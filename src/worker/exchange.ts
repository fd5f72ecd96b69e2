/**
 * One call of a worker to the store, and what to do if the store refuses its data. A call carries the settles of many jobs,
 * and the store writes all of them or none. If one holds a value that the store can never keep, the call is taken apart
 * until that settle stands alone. Its job becomes a dead letter that says why; all others are settled as they should be.
 */
import type { Core } from '../core/core.ts'
import { isRefusal } from '../errors.ts'
import { toError } from '../job/settlement.ts'
import type { ClaimRequest, Report, SettleAnswer } from '../stores/store.ts'
import type { Session, SessionAnswer } from './session.ts'
import { settleAsRefused, type PendingSettle } from './settling.ts'

export interface Exchanged {
  /** Whether the claim was made, if there was one: no leases mean then that nothing was claimable. */
  readonly claimed: boolean
  readonly leases: SessionAnswer['leases']
  /** What the store answered, each with what was written in the end. */
  readonly settled: readonly { readonly pending: PendingSettle; readonly answer: SettleAnswer }[]
  /** When the store was asked for the leases. */
  readonly sentMs: number
  /** Settles without an answer, because the store failed meanwhile: to be sent again. */
  readonly left: readonly PendingSettle[]
  /** Why some are left. */
  readonly failure: unknown
}

/**
 * Throws if the store did not answer at all: then every settle is to be sent again. Reports are not: if the first call
 * was written and only its answer was lost, their log lines would be there twice.
 */
export async function exchange(
  core: Core,
  session: Session,
  settles: readonly PendingSettle[],
  claim: ClaimRequest | null,
  reports: readonly Report[] = [],
): Promise<Exchanged> {
  try {
    const { alive, settled, leases, sentMs } = await session.cycle(requestsOf(settles), claim, reports)
    return { claimed: alive, leases, sentMs, settled: answered(settles, settled), left: [], failure: null }
  } catch (error) {
    if (!isRefusal(error)) throw error
    // The store may have refused a report, which no job needs.
    if (reports.length > 0) return exchange(core, session, settles, claim)
    if (settles.length === 0) throw error
    return { claimed: false, leases: [], sentMs: 0, ...(await settleApart(core, session, settles)) }
  }
}

/** Without a claim: the next call claims again. */
async function settleApart(
  core: Core,
  session: Session,
  settles: readonly PendingSettle[],
): Promise<Pick<Exchanged, 'settled' | 'left' | 'failure'>> {
  const settled: Exchanged['settled'][number][] = []
  /** Even their dead letters were refused: tried again later, so that nothing is lost. */
  const stuck: PendingSettle[] = []
  let failure: unknown = null
  const groups = halves(settles)
  for (let group = groups.shift(); group !== undefined; group = groups.shift()) {
    try {
      const answer = await session.cycle(requestsOf(group), null)
      settled.push(...answered(group, answer.settled))
    } catch (error) {
      const [first] = group
      failure = error
      if (!isRefusal(error) || first === undefined)
        return { settled, left: [group, ...groups, stuck].flat(), failure }
      if (group.length > 1) groups.unshift(...halves(group))
      else if (first.refused === true) stuck.push(first)
      else groups.unshift([settleAsRefused(core, first, toError(error))])
    }
  }
  return { settled, left: stuck, failure }
}

function halves(settles: readonly PendingSettle[]): PendingSettle[][] {
  const middle = Math.ceil(settles.length / 2)
  return [settles.slice(0, middle), settles.slice(middle)].filter((half) => half.length > 0)
}

function requestsOf(settles: readonly PendingSettle[]): PendingSettle['request'][] {
  return settles.map(({ request }) => request)
}

function answered(settles: readonly PendingSettle[], answers: readonly SettleAnswer[]): Exchanged['settled'] {
  return settles.map((pending, index) => ({ pending, answer: answers[index] ?? 'lost' }))
}
