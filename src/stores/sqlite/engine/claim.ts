/** Claims: the ready jobs of lowest rank, under a lease of their own. */
import type { JobId, Token, WorkerId } from '../../../job/ids.ts'
import type { ClaimRequest, CycleAnswer, CycleRequest, Lease } from '../../store.ts'
import { damaged } from './damage.ts'
import type { Engine } from './engine.ts'
import { claimedJob, type JobRow } from './rows.ts'
import { settleAll } from './settle.ts'

/** Settles, then claims: the claim can take what the settle released. */
export function cycle(engine: Engine, { worker, settle, claim }: CycleRequest): CycleAnswer {
  const settled = settleAll(engine, worker, settle)
  const alive = isAlive(engine, worker)
  return { alive, settled, leases: alive && claim !== null ? claimJobs(engine, worker, claim) : [] }
}

/** The answer of a cycle that would write nothing; undefined if it would. An idle worker must not take the write lock. */
export function idleCycle(engine: Engine, { worker, settle, claim }: CycleRequest): CycleAnswer | undefined {
  if (settle.length > 0) return undefined
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
  takeOut(engine, claim.queue, chosen)
  const plain = chosen.filter(({ suspect }) => suspect === 0)
  const suspects = chosen.filter(({ suspect }) => suspect === 1)
  return [plain, suspects]
    .filter(({ length }) => length > 0)
    .map((jobs) => grant(engine, worker, claim.queue, jobs))
}

/** The first of a queue in order of rank, at most one suspect among them. */
function candidates(engine: Engine, { queue, limit, suspects }: ClaimRequest): Candidate[] {
  if (limit < 1 || engine.db.get<{ paused: number }>('isPaused', queue)?.paused === 1) return []
  const plain = oldest(engine, queue, 0, limit)
  return suspects ? firstByRank([...plain, ...oldest(engine, queue, 1, 1)], limit) : plain
}

const LOWEST = Number.MIN_SAFE_INTEGER

/** Jobs of one head start are in order of rank. There are few head starts, usually one: each is read on its own. */
function oldest(engine: Engine, queue: string, suspect: 0 | 1, limit: number): Candidate[] {
  const found: Candidate[] = []
  let heads = 0
  let first = engine.db.get<Candidate>('nextHead', queue, suspect, LOWEST)
  while (first !== undefined) {
    const { head } = first
    const jobs = engine.db.all<Candidate>('oldestReady', queue, suspect, head, limit)
    for (const { due, id, seq } of jobs) found.push({ suspect, head, due, id, seq })
    heads++
    first = engine.db.get<Candidate>('nextHead', queue, suspect, head)
  }
  return heads > 1 ? firstByRank(found, limit) : found
}

function firstByRank(candidates: Candidate[], limit: number): Candidate[] {
  return candidates
    .sort((a, b) => a.due - a.head - (b.due - b.head) || (a.id < b.id ? -1 : 1))
    .slice(0, limit)
}

function takeOut(engine: Engine, queue: string, chosen: readonly Candidate[]): void {
  const ranges = new Map<string, { last: Candidate; size: number }>()
  for (const job of chosen) {
    const key = `${job.suspect} ${job.head}`
    ranges.set(key, { last: job, size: (ranges.get(key)?.size ?? 0) + 1 })
  }
  for (const { last, size } of ranges.values()) {
    const { suspect, head, due, id } = last
    const taken = engine.db.run('takeReady', queue, suspect, head, due, id)
    if (taken !== size) throw damaged(`a claim of ${size} jobs took ${taken} out of ready`)
  }
}

function grant(engine: Engine, worker: WorkerId, queue: string, chosen: readonly Candidate[]): Lease {
  const rows = chosen.map((candidate) => bodyOf(engine, candidate))
  const keyed = rows.filter(({ unique_key: key }) => key !== null)
  for (const row of keyed) if (row.key_while === 'ready') engine.freeKey(row)
  const claimedAt = engine.now()
  const size = rows.length
  const granted = engine.db.get<{ token: Token }>(
    'grantLease',
    worker,
    queue,
    claimedAt,
    size,
    size,
    keyed.length > 0 ? 1 : 0,
  )
  if (granted === undefined) throw new Error('A claim was not granted a lease.')
  const { token } = granted
  engine.db.run('writeLeased', token, JSON.stringify(rows.map(({ seq }) => seq)))
  engine.count(queue, 'ready', -size)
  engine.count(queue, 'running', size)
  return { token, queue, claimedAt, jobs: rows.map((row) => claimedJob(row, 1)) }
}

/** An entry that points to another job would run that one twice, and its own never. */
function bodyOf(engine: Engine, { seq, id, due, head }: Candidate): JobRow {
  const row = engine.jobAt(seq)
  if (row.id !== id || row.due !== due || row.head !== head)
    throw damaged(`ready job ${id} differs from its entry`)
  return row
}
