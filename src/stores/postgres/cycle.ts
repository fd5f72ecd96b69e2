/** Settle and claim: one round trip, and a second one only where something is not as it nearly always is, or is long. */
import type { JobId, Token } from '../../job/ids.ts'
import type { Clock } from '../../std/clock.ts'
import type { ClaimRequest, CycleAnswer, CycleRequest, Lease } from '../store.ts'
import { lacksPayload, unpack, type PackedJob } from './bodies.ts'
import type { Queryable, SqlValue } from './executor.ts'
import { SUSPECTS_LANE, type Lanes, type Look } from './lanes.ts'
import { intArray, uuidArray } from './literals.ts'
import { NO_SETTLES, notFound, packSettles, readSettled, type Held } from './settles.ts'
import type { Statements } from './statements.ts'

interface CycleRow {
  readonly alive: boolean
  readonly settled: Held | null
  readonly token: Token | null
  readonly claimed_at: number
  readonly jobs: string
}

export interface CycleParts {
  readonly db: Queryable
  readonly statements: Statements
  readonly lanes: Lanes
  readonly clock: Pick<Clock, 'monotonicMs'>
}

const NO_CLAIM: readonly SqlValue[] = [null, null, null, null]

export async function cycle(parts: CycleParts, request: CycleRequest): Promise<CycleAnswer> {
  const { worker, settle, claim } = request
  // What is released here must be found by the claim behind it, wherever it ranks.
  const released = settle.some(({ settlement }) => settlement.type === 'release')
  const look = claim === null ? null : parts.lanes.look(claim.queue, claim.suspects, released)
  const rows = await send(parts, worker, packSettles(settle), claim, look)
  const { alive, settled } = firstOf(rows)
  let leases = await leasesIn(parts, rows, claim)
  if (claim !== null && alive && leases.length === 0 && look?.sweep === false) {
    const sweep = parts.lanes.look(claim.queue, claim.suspects, true)
    leases = await leasesIn(parts, await send(parts, worker, NO_SETTLES, claim, sweep), claim)
  }
  const held = settled ?? []
  const unknown = notFound(settle, held)
  const finished = unknown.length === 0 ? new Set<Token>() : await finishedOf(parts, unknown)
  return { alive, settled: readSettled(settle, held, finished), leases }
}

async function send(
  { db, statements, lanes, clock }: CycleParts,
  worker: string,
  settles: readonly SqlValue[],
  claim: ClaimRequest | null,
  look: Look | null,
): Promise<CycleRow[]> {
  const sentMs = clock.monotonicMs()
  const wanted =
    claim === null || look === null
      ? NO_CLAIM
      : [claim.queue, claim.limit, intArray(look.lanes), intArray(look.from)]
  const rows = await db.query<CycleRow>(statements.cycle, [worker, ...settles, ...wanted])
  if (claim !== null && look?.sweep === true) lanes.swept(claim.queue, clock.monotonicMs() - sentMs)
  return rows
}

function firstOf(rows: readonly CycleRow[]): CycleRow {
  const [row] = rows
  if (row === undefined) throw new Error('The function cycle answered without a row.')
  return row
}

async function leasesIn(
  parts: CycleParts,
  rows: readonly CycleRow[],
  claim: ClaimRequest | null,
): Promise<Lease[]> {
  if (claim === null) return []
  const { queue } = claim
  const claims = rows.flatMap(({ token, claimed_at: claimedAt, jobs }) =>
    token === null ? [] : [{ token, claimedAt, packed: JSON.parse(jobs) as PackedJob[] }],
  )
  const long = claims.flatMap(({ packed }) => packed.filter(lacksPayload).map(([, [id]]) => id))
  const payloads = long.length === 0 ? undefined : await longPayloads(parts, long)
  return claims.map(({ token, claimedAt, packed }) => {
    const jobs = packed.map((one) => unpack(one, queue, payloads?.get(one[1][0])))
    for (const { priority, crashes, dueAt, headStartMs } of jobs)
      parts.lanes.taken(queue, crashes > 0 ? SUSPECTS_LANE : priority, dueAt - headStartMs)
    return { token, queue, claimedAt, jobs }
  })
}

async function longPayloads(
  { db, statements }: CycleParts,
  ids: readonly JobId[],
): Promise<ReadonlyMap<JobId, string>> {
  const rows = await db.query<{ id: JobId; body: string }>(statements.longPayloads, [uuidArray(ids)])
  return new Map(rows.map(({ id, body }) => [id, body]))
}

async function finishedOf({ db, statements }: CycleParts, tokens: readonly Token[]): Promise<Set<Token>> {
  const rows = await db.query<{ token: Token; finished: boolean }>(statements.wasFinished, [intArray(tokens)])
  return new Set(rows.filter((row) => row.finished).map((row) => row.token))
}
