/** Settles as holdfast.settle takes them: lease by lease and position by position. */
import type { Token } from '../../job/ids.ts'
import type { Settlement } from '../../job/settlement.ts'
import { byLease, checkSettles, isForgotten, unknownSettlement } from '../settles.ts'
import type { SettleAnswer, SettleRequest } from '../store.ts'
import type { SqlValue } from './executor.ts'
import { boolArray, intArray, textArray } from './literals.ts'
import { packRecord } from './packed-jobs.ts'

/**
 * The leases that are still this worker's, with the positions settled before ('1') if the call asked for any of those.
 */
export type Held = ReadonlyMap<Token, string | null>

export const NO_SETTLES: readonly SqlValue[] = [null, null, null, null, null, null, null, null, null]

/** Beyond the largest lease there is nothing to settle. */
const MAX_POSITION = 10_000

export function packSettles(requests: readonly SettleRequest[]): readonly SqlValue[] {
  if (requests.length === 0) return NO_SETTLES
  checkSettles(requests)
  // In order of token, in which locks are taken.
  const leases = byLease(requests).sort((a, b) => a.token - b.token)
  const positions = leases.map((lease) => byPosition(lease.requests))
  const all = positions.flatMap((settles) => settles.filter((settle) => settle !== undefined))
  const list = <T>(read: (settle: SettleRequest) => T): T[] => all.map(read)
  const kinds = list(kindOf)
  const onlyKind = kinds.every((kind) => kind === kinds[0]) ? kinds[0] : undefined
  const plain = onlyKind === 'completed' || onlyKind === 'forget'
  const details = list((request) => (isForgotten(request) ? null : detailOf(request.settlement)))
  const dropped = list(({ settlement }) => 'resultDropped' in settlement && settlement.resultDropped)
  return [
    intArray(leases.map(({ token }) => token)),
    textArray(positions.map(maskOf)),
    plain ? null : textArray(kinds),
    plain ? null : intArray(list(({ settlement }) => delayOf(settlement))),
    intArray(list(({ runMs }) => Math.min(Math.round(runMs), MAX_INT))),
    details.every((detail) => detail === null) ? null : textArray(details),
    dropped.includes(true) ? boolArray(dropped) : null,
    requests.some(({ record }) => record) ? textArray(list(recordOf)) : null,
    onlyKind === 'forget',
  ]
}

/** The largest integer of the server: 24 days in milliseconds. */
const MAX_INT = 2_147_483_647

/** As holdfast.settle names them. */
const KINDS = {
  completed: 'completed',
  retry: 'retry',
  dead: 'dead',
  snooze: 'snooze',
  release: 'release',
  // A settled position is never changed, and an open one must come back.
  confirm: 'release',
  cancelled: 'cancelled',
} as const satisfies Record<Settlement['type'], string>

function kindOf(request: SettleRequest): (typeof KINDS)[Settlement['type']] | 'forget' {
  return isForgotten(request) ? 'forget' : KINDS[request.settlement.type]
}

function recordOf(request: SettleRequest): string | null {
  const { record, keepRecords } = request
  return record && !isForgotten(request) ? packRecord(record, keepRecords) : null
}

/** If a position is settled twice, the first one counts. */
function byPosition(requests: readonly SettleRequest[]): (SettleRequest | undefined)[] {
  const settles: (SettleRequest | undefined)[] = []
  for (const request of requests) {
    const { position } = request
    // A position that does not exist is recognised by the answer.
    if (position >= 0 && position < MAX_POSITION) settles[position] ??= request
  }
  return settles
}

function maskOf(settles: readonly (SettleRequest | undefined)[]): string {
  return Array.from(settles, (settle) => (settle === undefined ? '0' : '1')).join('')
}

function detailOf(settlement: Settlement): string | null {
  switch (settlement.type) {
    case 'completed':
      return settlement.result
    case 'cancelled':
      return settlement.reason
    case 'retry':
    case 'dead':
      return JSON.stringify(settlement.error)
    case 'snooze':
      return settlement.error === null ? null : JSON.stringify(settlement.error)
    case 'release':
    case 'confirm':
      return null
    default:
      return unknownSettlement(settlement)
  }
}

function delayOf(settlement: Settlement): number | null {
  return 'delayMs' in settlement ? Math.round(settlement.delayMs) : null
}

/** Reads the text that holdfast.settle returns: `token`, or `token:done`, separated by commas. */
export function readHeld(text: string): Held {
  if (text === '') return new Map()
  return new Map(
    text.split(',').map((entry): [Token, string | null] => {
      const [token = '', done] = entry.split(':')
      return [Number(token) as Token, done ?? null]
    }),
  )
}

/** `finished`: those of the leases that were not found which had been settled to their end. */
export function readSettled(
  requests: readonly SettleRequest[],
  held: Held,
  finished: ReadonlySet<Token>,
): SettleAnswer[] {
  const written = new Set<string>()
  return requests.map(({ token, position }) => {
    const done = held.get(token)
    if (done === undefined) return finished.has(token) ? 'already' : 'lost'
    const before = done === null ? '0' : done[position]
    if (before === undefined || position < 0) return 'lost'
    const place = `${token} ${position}`
    if (before === '1' || written.has(place)) return 'already'
    written.add(place)
    return 'written'
  })
}

/** Leases that a settle asked for and did not find. */
export function notFound(requests: readonly SettleRequest[], held: Held): Token[] {
  return [...new Set(requests.map(({ token }) => token))].filter((token) => !held.has(token))
}
