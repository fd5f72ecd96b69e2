/** Settles on their way to the database: packed lease by lease and position by position, as holdfast.settle takes them. */
import type { Token } from '../../job/ids.ts'
import type { Settlement } from '../../job/settlement.ts'
import { assertNever } from '../../std/never.ts'
import type { SettleAnswer, SettleRequest } from '../store.ts'
import { packRecord } from './bodies.ts'
import type { SqlValue } from './executor.ts'
import { boolArray, intArray, textArray } from './literals.ts'

/** What each lease said of its positions before: '1' stands for settled. */
export type Held = readonly (readonly [token: Token, done: string])[]

export const NO_SETTLES: readonly SqlValue[] = [null, null, null, null, null, null, null, null, null, null]

interface LeaseSettles {
  /** By position; a hole where nothing is asked for. */
  readonly settles: (SettleRequest | undefined)[]
}

export function packSettles(requests: readonly SettleRequest[]): readonly SqlValue[] {
  if (requests.length === 0) return NO_SETTLES
  const leases = byLease(requests)
  const all = [...leases.values()].flatMap(({ settles }) => Array.from(settles))
  let start = 0
  const starts = [...leases.values()].map(({ settles }) => (start += settles.length) - settles.length)
  const list = <T>(read: (settle: SettleRequest) => T | null): (T | null)[] =>
    all.map((settle) => (settle === undefined ? null : read(settle)))
  const kinds = list(kindOf)
  const onlyKind = requests.every((request) => kindOf(request) === kinds[0]) ? kinds[0] : undefined
  const plain = onlyKind === 'completed' || onlyKind === 'forget'
  const details = list((request) => (kindOf(request) === 'forget' ? null : detailOf(request.settlement)))
  const dropped = list(({ settlement }) => settlement.type === 'completed' && settlement.resultDropped)
  return [
    intArray([...leases.keys()]),
    textArray([...leases.values()].map(({ settles }) => maskOf(settles))),
    intArray(starts),
    plain ? null : textArray(kinds),
    plain ? null : intArray(list(({ settlement }) => delayOf(settlement))),
    intArray(list(({ runMs }) => Math.round(runMs))),
    details.every((detail) => detail === null) ? null : textArray(details),
    dropped.includes(true) ? boolArray(dropped) : null,
    onlyKind === 'forget',
    requests.some(({ record }) => record) ? textArray(list(recordOf)) : null,
  ]
}

/** As holdfast.settle names them. */
function kindOf({ settlement, forget }: SettleRequest): Settlement['type'] | 'forget' {
  const ends = settlement.type === 'completed' || settlement.type === 'dead'
  return ends && forget === true ? 'forget' : settlement.type
}

function recordOf(request: SettleRequest): string | null {
  const { record, keepRecords } = request
  return record && kindOf(request) !== 'forget' ? packRecord(record, keepRecords) : null
}

/** In order of token, as locks are taken. Of two settles of one position the first counts. */
function byLease(requests: readonly SettleRequest[]): Map<Token, LeaseSettles> {
  const leases = new Map<Token, LeaseSettles>()
  for (const request of requests.toSorted((a, b) => a.token - b.token)) {
    let lease = leases.get(request.token)
    if (lease === undefined) leases.set(request.token, (lease = { settles: [] }))
    // Beyond the largest lease there is nothing to settle; the answer tells.
    if (request.position >= 0 && request.position < MAX_POSITION) lease.settles[request.position] ??= request
  }
  return leases
}

const MAX_POSITION = 10_000

function maskOf(settles: LeaseSettles['settles']): string {
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
      return null
    default:
      return assertNever(settlement)
  }
}

function delayOf(settlement: Settlement): number | null {
  return settlement.type === 'retry' || settlement.type === 'snooze' ? Math.round(settlement.delayMs) : null
}

/** `finished` tells of the leases that were not found, whether they had been settled to their end. */
export function readSettled(
  requests: readonly SettleRequest[],
  held: Held,
  finished: ReadonlySet<Token>,
): SettleAnswer[] {
  const before = new Map(held)
  const written = new Set<string>()
  return requests.map(({ token, position }) => {
    const done = before.get(token)
    if (done === undefined) return finished.has(token) ? 'already' : 'lost'
    const bit = done[position]
    if (bit === undefined) return 'lost'
    const place = `${token} ${position}`
    if (bit === '1' || written.has(place)) return 'already'
    written.add(place)
    return 'written'
  })
}

/** Leases that a settle asked for and did not find. */
export function notFound(requests: readonly SettleRequest[], held: Held): Token[] {
  const found = new Set(held.map(([token]) => token))
  return [...new Set(requests.map(({ token }) => token))].filter((token) => !found.has(token))
}
