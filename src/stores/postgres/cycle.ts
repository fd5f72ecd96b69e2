/** Report, settle and claim: one round trip, and a second one only if something is not as it usually is. */
import type { Token } from '../../job/ids.ts'
import type { Settlement } from '../../job/settlement.ts'
import type { Clock } from '../../std/clock.ts'
import { brokenAnswer, parseAnswer } from '../broken-answer.ts'
import {
  MAX_LOG_LINES,
  type ClaimRequest,
  type CycleAnswer,
  type CycleRequest,
  type Lease,
  type Report,
  type SettleRequest,
} from '../store.ts'
import type { Background } from './background.ts'
import type { Queryable, SqlValue } from './executor.ts'
import { SUSPECTS_LANE, type Found, type Lanes, type Look } from './lanes.ts'
import { intArray } from './literals.ts'
import { unpackJob, type PackedJob } from './packed-jobs.ts'
import { sweepBeside } from './overlooked.ts'
import { NO_SETTLES, notFound, packSettles, readHeld, readSettled, type Held } from './settles.ts'
import type { Statements } from './statements.ts'

export interface CycleParts {
  readonly db: Queryable
  readonly statements: Statements
  readonly lanes: Lanes
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly background: Background
  /** Whether there is a subscriber to wake-ups. Otherwise nothing announces jobs below the last claimed rank. */
  readonly isSubscribed: () => boolean
}

/** What holdfast.cycle returned. */
interface Answer {
  readonly alive: boolean
  readonly held: Held
  readonly extent: Found['extent']
  readonly claims: readonly Claim[]
}

interface Claim {
  readonly token: Token
  readonly claimedAt: number
  readonly jobs: readonly PackedJob[]
  /** In the order of the jobs. */
  readonly payloads: readonly string[]
}

export const NO_CLAIM: readonly SqlValue[] = [null, null, null, null, null]
const NO_REPORTS: readonly Report[] = []

/** How the claim says what it has seen; see holdfast.claim. */
const EXTENTS: Readonly<Record<string, Found['extent']>> = { '.': 'all', '+': 'some' }

/** Whether the job becomes ready where it stood. A confirm writes only if the commit was lost. */
const READY_AGAIN: Readonly<Record<Settlement['type'], 'always' | 'if written' | 'never'>> = {
  completed: 'never',
  retry: 'never',
  dead: 'never',
  snooze: 'never',
  release: 'always',
  confirm: 'if written',
  cancelled: 'never',
}

export async function cycle(parts: CycleParts, request: CycleRequest): Promise<CycleAnswer> {
  const { worker, settle, claim, reports = NO_REPORTS } = request
  const { lanes } = parts
  // What is released here must be found by the claim behind it, wherever it ranks.
  const released = settle.filter(({ settlement: { type } }) => READY_AGAIN[type] === 'always')
  const window = claim === null ? null : lanes.nextWindow(claim.queue)
  if (claim !== null && window !== null) void sweepBeside(parts, claim.queue, window)
  const look = claim === null ? null : lanes.look(claim.queue, claim.suspects, !lowerMarks(lanes, released))
  const first = { worker, settles: packSettles(settle), claim, reports }
  const answer = await send(parts, first, look)
  const { alive, held } = answer
  const unknown = notFound(settle, held)
  const finished = unknown.length === 0 ? new Set<Token>() : await finishedOf(parts, unknown)
  const settled = readSettled(settle, held, finished)
  const lost = settle.filter(
    ({ settlement: { type } }, at) => READY_AGAIN[type] === 'if written' && settled[at] === 'written',
  )
  const isLost = lost.length > 0
  // Before it was there, other claims may have moved the marks past what this claim has left.
  const isLeft = ({ job }: SettleRequest): boolean => answer.extent !== 'all' || job?.queue !== claim?.queue
  const isKnown = lowerMarks(lanes, isLost ? lost : released.filter(isLeft))
  let leases = leasesIn(answer.claims, claim)
  // Under an old transaction a sweep reads every row that was ever deleted. Subscribers have wake-ups, or poll.
  const mustSweep = answer.extent === 'all' && look?.sweep === false && !parts.isSubscribed()
  if (claim !== null && leases.length === 0 && (mustSweep || isLost)) {
    const again = lanes.look(claim.queue, claim.suspects, mustSweep || !isKnown)
    const second = { worker, settles: NO_SETTLES, claim, reports: NO_REPORTS }
    leases = leasesIn((await send(parts, second, again)).claims, claim)
  }
  return { alive, settled, leases }
}

/** The jobs are back, or about to be. False if it is not known where. */
function lowerMarks(lanes: Lanes, released: readonly SettleRequest[]): boolean {
  for (const { job } of released) {
    if (job === undefined) return false
    const { queue, priority, crashes, dueAt, headStartMs } = job
    lanes.lower(queue, crashes > 0 ? SUSPECTS_LANE : priority, dueAt - headStartMs)
  }
  return true
}

interface Call {
  readonly worker: string
  readonly settles: readonly SqlValue[]
  readonly claim: ClaimRequest | null
  readonly reports: readonly Report[]
}

async function send(parts: CycleParts, call: Call, look: Look | null): Promise<Answer> {
  const { lanes, clock } = parts
  const { claim } = call
  if (claim === null || look === null) return query(parts, call, NO_CLAIM)
  const { queue, limit } = claim
  const wanted = [queue, limit, intArray(look.lanes), intArray(look.from), intArray(look.to)]
  const sentMs = clock.monotonicMs()
  try {
    const answer = await query(parts, call, wanted)
    const { claims, extent } = answer
    const last = claims.at(-1)
    if (last !== undefined) lanes.sawTime(last.claimedAt)
    lanes.answered(queue, look, clock.monotonicMs() - sentMs, { extent, taken: takenIn(claims) })
    return answer
  } catch (error) {
    lanes.failed(queue, look, clock.monotonicMs() - sentMs)
    throw error
  }
}

async function query(
  { db, statements }: CycleParts,
  { worker, settles, reports }: Call,
  claim: readonly SqlValue[],
): Promise<Answer> {
  const values = [worker, ...settles, ...claim]
  if (reports.length === 0) return readRows(await db.query(statements.cycle, values))
  values.push(packReports(reports), MAX_LOG_LINES)
  return readRows(await db.query(statements.cycleWithReports, values))
}

/** As holdfast.report takes them. */
function packReports(reports: readonly Report[]): string {
  return JSON.stringify(reports.map(({ token, position, progress, log }) => [token, position, progress, log]))
}

/** The first row is the answer, the others are the payloads that it leaves out. */
export function readRows([row, ...payloads]: readonly { readonly answer: string }[]): Answer {
  if (row === undefined) throw brokenAnswer('postgres', 'the function cycle returned no row')
  const answer = readAnswer(row.answer)
  return payloads.length === 0 ? answer : withPayloads(answer, payloads)
}

function readAnswer(text: string): Answer {
  const [settled = '', extent = '', ...claims] = text.split('\x1c')
  return {
    alive: settled.startsWith('a'),
    held: readHeld(settled.slice(1)),
    extent: EXTENTS[extent] ?? 'closed',
    claims: claims.map(readClaim),
  }
}

/** Payloads come in the order of their jobs' ids, those of all claims together. */
function withPayloads(answer: Answer, rows: readonly { readonly answer: string }[]): Answer {
  const claims = answer.claims.map((claim) => ({ ...claim, payloads: [...claim.payloads] }))
  const places = claims.flatMap(({ jobs, payloads }) =>
    jobs.flatMap(([, [id]], place) => (payloads[place] === '' ? [{ id, payloads, place }] : [])),
  )
  places.sort((a, b) => (a.id < b.id ? -1 : 1))
  if (places.length !== rows.length) {
    const what = `the function cycle returned ${rows.length} payloads for ${places.length} jobs`
    throw brokenAnswer('postgres', what)
  }
  for (const [at, { payloads, place }] of places.entries()) payloads[place] = rows[at]?.answer ?? ''
  return { ...answer, claims }
}

/** The last one of each lane, in order of rank: the others tell nothing more. */
function takenIn(claims: readonly Claim[]): Found['taken'] {
  const taken = new Map<number, Found['taken'][number]>()
  for (const { jobs } of claims.toReversed())
    for (let place = jobs.length - 1; place >= 0; place--) {
      const [dueAt, [, , lane, headStartMs], , crashes = 0] = jobs[place] as PackedJob
      if (crashes === 0 && !taken.has(lane)) taken.set(lane, { lane, rank: dueAt - headStartMs, headStartMs })
    }
  return [...taken.values()].toReversed()
}

function readClaim(text: string): Claim {
  const [token, claimedAt, jobs = '', payloads = ''] = text.split('\x1d')
  return {
    token: Number(token) as Token,
    claimedAt: Number(claimedAt),
    jobs: parseAnswer<PackedJob[]>('postgres', `[${jobs}]`),
    payloads: payloads.split('\x1e'),
  }
}

function leasesIn(claims: readonly Claim[], claim: ClaimRequest | null): Lease[] {
  if (claim === null) return []
  const { queue } = claim
  return claims.map(({ token, claimedAt, jobs, payloads }) => ({
    token,
    queue,
    claimedAt,
    jobs: jobs.map((job, place) => unpackJob(job, queue, payloads[place] ?? '')),
  }))
}

async function finishedOf({ db, statements }: CycleParts, tokens: readonly Token[]): Promise<Set<Token>> {
  const rows = await db.query<{ token: Token; finished: boolean }>(statements.wasFinished, [intArray(tokens)])
  return new Set(rows.filter((row) => row.finished).map((row) => row.token))
}
