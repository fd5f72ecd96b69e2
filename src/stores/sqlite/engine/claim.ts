/** Claims: the ready jobs of lowest rank, under a lease of their own. */
import type { JobId, Token, WorkerId } from '../../../job/ids.ts'
import type { ClaimRequest, CycleAnswer, CycleRequest, Lease } from '../../store.ts'
import { checkJob, damaged } from './damage.ts'
import { suspect, type Engine } from './engine.ts'
import { claimedJob, readJobRow, type JobRow, type JobValues } from './rows.ts'
import { settleAll } from './settle.ts'
import { keepReports } from './workers.ts'

/** Keeps reports, settles, then claims: a settled job keeps its reports, and the claim can take what the settle released. */
export function cycle(engine: Engine, { worker, settle, claim, reports = [] }: CycleRequest): CycleAnswer {
  keepReports(engine, worker, reports)
  const settled = settleAll(engine, worker, settle)
  const alive = isAlive(engine, worker)
  return { alive, settled, leases: alive && claim !== null ? claimJobs(engine, worker, claim) : [] }
}

/** The answer of a cycle that would write nothing; undefined if it would. An idle worker must not take the write lock. */
export function idleCycle(
  engine: Engine,
  { worker, settle, claim, reports = [] }: CycleRequest,
): CycleAnswer | undefined {
  if (settle.length + reports.length > 0) return undefined
  const alive = isAlive(engine, worker)
  const isEmpty = !alive || claim === null || candidates(engine, { ...claim, limit: 1 }).length === 0
  return isEmpty ? { alive, settled: [], leases: [] } : undefined
}

function isAlive(engine: Engine, worker: WorkerId): boolean {
  return engine.db.get('worker', worker) !== undefined
}

interface Candidate {
  readonly suspect: 0 | 1
  readonly head: number
  readonly due: number
  readonly id: JobId
  readonly seq: number
}

function claimJobs(engine: Engine, worker: WorkerId, claim: ClaimRequest): Lease[] {
  const chosen = candidates(engine, claim)
  const bodies = takeOut(engine, claim.queue, chosen)
  const jobs = chosen.map((candidate) => bodyOf(candidate, bodies))
  const isSuspect = (job: JobRow): boolean => suspect(job) === 1
  return [jobs.filter((job) => !isSuspect(job)), jobs.filter(isSuspect)]
    .filter(({ length }) => length > 0)
    .map((rows) => grant(engine, worker, claim.queue, rows))
}

/** The first of a queue in order of rank, at most one suspect among them. */
function candidates(engine: Engine, { queue, limit, suspects }: ClaimRequest): Candidate[] {
  if (limit < 1 || engine.db.get<{ paused: number }>('isPaused', queue)?.paused === 1) return []
  const plain = oldest(engine, queue, 0, limit)
  return suspects ? firstByRank([...plain, ...oldest(engine, queue, 1, 1)], limit) : plain
}

const LOWEST = Number.MIN_SAFE_INTEGER

/** Jobs of one head start are in order of rank. There are few head starts, usually one: each is read on its own. */
function oldest(engine: Engine, queue: string, lost: 0 | 1, limit: number): Candidate[] {
  const found: Candidate[] = []
  let heads = 0
  let first = engine.db.get<Candidate>('nextHead', queue, lost, LOWEST)
  while (first !== undefined) {
    const { head } = first
    const jobs = engine.db.all<Candidate>('oldestReady', queue, lost, head, limit)
    for (const { due, id, seq } of jobs) found.push({ suspect: lost, head, due, id, seq })
    heads++
    first = engine.db.get<Candidate>('nextHead', queue, lost, head)
  }
  return heads > 1 ? firstByRank(found, limit) : found
}

function firstByRank(candidates: Candidate[], limit: number): Candidate[] {
  return candidates
    .sort((a, b) => a.due - a.head - (b.due - b.head) || (a.id < b.id ? -1 : 1))
    .slice(0, limit)
}

/** Returns their bodies by seq. */
function takeOut(engine: Engine, queue: string, chosen: readonly Candidate[]): ReadonlyMap<number, JobRow> {
  const { db } = engine
  const ranges = new Map<string, { last: Candidate; size: number }>()
  for (const job of chosen) {
    const key = `${job.suspect} ${job.head}`
    ranges.set(key, { last: job, size: (ranges.get(key)?.size ?? 0) + 1 })
  }
  const bodies = new Map<number, JobRow>()
  for (const { last, size } of ranges.values()) {
    const range = [queue, last.suspect, last.head, last.due, last.id]
    for (const values of db.rows<JobValues>('readyBodies', ...range)) {
      const row = checkJob(readJobRow(values))
      bodies.set(row.seq, row)
    }
    const taken = db.run('takeReady', ...range)
    if (taken !== size) throw damaged(`a claim of ${size} jobs took ${taken} out of ready`)
  }
  return bodies
}

/** An entry that points to another job would run that one twice, and its own never. */
function bodyOf(
  { suspect: lost, seq, id, due, head }: Candidate,
  bodies: ReadonlyMap<number, JobRow>,
): JobRow {
  const row = bodies.get(seq)
  if (row?.id !== id || row.due !== due || row.head !== head || suspect(row) !== lost)
    throw damaged(`ready job ${id} differs from its entry`)
  return row
}

function grant(engine: Engine, worker: WorkerId, queue: string, rows: readonly JobRow[]): Lease {
  const keyed = rows.filter(({ unique_key: key }) => key !== null)
  for (const row of keyed) if (row.key_while === 'ready') engine.freeKey(row)
  const claimedAt = engine.now()
  const size = rows.length
  const token = engine.db.insert(
    'grantLease',
    worker,
    queue,
    claimedAt,
    size,
    size,
    keyed.length > 0 ? 1 : 0,
  ) as Token
  engine.db.run('writeLeased', token, JSON.stringify(rows.map(({ seq }) => seq)))
  engine.count(queue, 'ready', -size)
  engine.count(queue, 'running', size)
  return { token, queue, claimedAt, jobs: rows.map((row) => claimedJob(row, 1)) }
}
