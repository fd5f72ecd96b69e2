/** Settles: what became of a job under a lease. */
import type { AttemptError } from '../../../job/failure.ts'
import type { Token, WorkerId } from '../../../job/ids.ts'
import type { AttemptRecord } from '../../../job/record.ts'
import { comesBack, type Settlement } from '../../../job/settlement.ts'
import { byLease, unknownSettlement } from '../../settles.ts'
import { MAX_ATTEMPT_RECORDS, type SettleAnswer, type SettleRequest } from '../../store.ts'
import type { Ending, Engine } from './engine.ts'
import { OpenLease } from './leases.ts'

export function settleAll(
  engine: Engine,
  worker: WorkerId,
  requests: readonly SettleRequest[],
): readonly SettleAnswer[] {
  const answers: SettleAnswer[] = requests.map(() => 'lost')
  for (const { token, places, requests: ofLease } of byLease(requests)) {
    const lease = OpenLease.at(engine, token)
    for (const [at, request] of ofLease.entries())
      answers[places[at] as number] =
        lease === undefined ? answerWithout(engine, token) : settle(engine, worker, lease, request)
    lease?.save()
  }
  return answers
}

/** A lease that is gone was settled to its end, unless it was revoked or never granted. */
function answerWithout(engine: Engine, token: Token): SettleAnswer {
  const last = engine.db.get<{ token: number }>('lastToken')?.token ?? 0
  if (!Number.isSafeInteger(token) || token < 1 || token > last) return 'lost'
  return engine.db.get('revokedLease', token) === undefined ? 'already' : 'lost'
}

function settle(engine: Engine, worker: WorkerId, lease: OpenLease, request: SettleRequest): SettleAnswer {
  const { position, settlement, runMs, record = null, keepRecords, forget = false } = request
  if (lease.row.worker !== worker) return 'lost'
  const seq = lease.openAt(position)
  if (typeof seq !== 'number') return seq === null ? 'already' : 'lost'
  const cancel = lease.cancels.get(position)
  lease.close(position)
  if (record !== null) remember(engine, seq, record, keepRecords)
  if (cancel !== undefined && comesBack(settlement)) cancelled(engine, lease, seq, cancel.reason)
  else write(engine, lease, seq, { settlement, runMs, forget })
  return 'written'
}

/** The newest records stay. */
export function remember(
  engine: Engine,
  seq: number,
  record: AttemptRecord,
  keep = MAX_ATTEMPT_RECORDS,
): void {
  const kept = Math.min(keep, MAX_ATTEMPT_RECORDS)
  const attempts = kept > 0 ? [...engine.past(seq).attempts, record].slice(-kept) : []
  engine.changePast(seq, { attempts })
}

interface Written {
  readonly settlement: Settlement
  readonly runMs: number
  readonly forget: boolean
}

function write(engine: Engine, lease: OpenLease, seq: number, { settlement, runMs, forget }: Written): void {
  const { token, worker } = lease.row
  switch (settlement.type) {
    case 'completed': {
      const { result, resultDropped } = settlement
      const end = { token, worker, runMs, result, resultDropped }
      return ended(engine, lease, seq, forget ? null : { state: 'completed', end })
    }
    case 'dead':
      if (!forget) engine.changePast(seq, { error: settlement.error })
      return ended(engine, lease, seq, forget ? null : { state: 'dead', end: { token } })
    case 'cancelled':
      return cancelled(engine, lease, seq, settlement.reason)
    case 'retry':
      return comeBackLater(engine, seq, settlement, 1)
    case 'snooze':
      return comeBackLater(engine, seq, settlement, 0)
    case 'release':
    case 'confirm':
      return release(engine, seq)
    default:
      return unknownSettlement(settlement)
  }
}

/** Deletes the job if `final` is null. */
function ended(
  engine: Engine,
  { row: { queue, keyed } }: OpenLease,
  seq: number,
  final: { readonly state: 'completed' | 'dead' | 'cancelled'; readonly end: Ending } | null,
): void {
  if (keyed === 1) engine.freeKey(engine.jobAt(seq))
  if (final === null) engine.deleteBody(seq)
  else engine.finish({ seq, queue }, final.state, final.end)
}

export function cancelled(engine: Engine, lease: OpenLease, seq: number, reason: string | null): void {
  ended(engine, lease, seq, { state: 'cancelled', end: { token: lease.row.token, reason } })
}

/** `counts`: 1 if the attempt counts, 0 if it does not. */
function comeBackLater(
  engine: Engine,
  seq: number,
  { delayMs, error }: { readonly delayMs: number; readonly error: AttemptError | null },
  counts: 0 | 1,
): void {
  const row = engine.jobAt(seq)
  const attempt = row.attempt + counts
  const due = engine.dueAt({ inMs: delayMs })
  if (error !== null) engine.changePast(seq, { error })
  engine.putWaiting(engine.comeBack(row, { due, attempt }), 'scheduled')
}

/** Makes the job ready in its old place, and hands its attempt back. */
export function release(engine: Engine, seq: number): void {
  engine.putWaiting(engine.jobAt(seq), 'ready')
}
