/** Upkeep: promotion, retention, leadership. */
import type { WorkerId } from '../../../job/ids.ts'
import type { FinalState } from '../../../job/states.ts'
import { FLUSH_MEMORY_MS, MAX_BATCH, type Retention } from '../../store.ts'
import { checkDuration } from '../../write-check.ts'
import { checkEnded, damaged } from './damage.ts'
import type { Engine } from './engine.ts'
import { isGone, rescueGone } from './rescue.ts'
import type { EndedRow, JobRow } from './rows.ts'

export function promote(engine: Engine, limit: number): { promoted: number; nextInMs: number | null } {
  const due = engine.db.all<{ due: number; seq: number }>('due', engine.now(), limit)
  for (const { seq } of due) {
    const row = engine.jobAt(seq)
    engine.takeWaiting(row, 'scheduled')
    engine.putWaiting(row, 'ready')
  }
  return { promoted: due.length, nextInMs: nextInMs(engine) }
}

/** How long until the next scheduled job is due; null if there is none. */
export function nextInMs(engine: Engine): number | null {
  const next = engine.db.get<{ due: number }>('nextDue')
  return next === undefined ? null : Math.max(0, next.due - engine.now())
}

interface EndedJob extends Pick<JobRow, 'seq' | 'queue'> {
  readonly finished: number
}

export function prune(engine: Engine, retention: Retention, limit: number): { pruned: number } {
  const now = engine.now()
  engine.db.run('pruneKeys', now, limit)
  engine.db.run('pruneFlushes', limit, now - FLUSH_MEMORY_MS)
  engine.db.run('pruneNotes', now)
  const totals = engine.db.get<Record<FinalState, number>>('totals') ?? {
    completed: 0,
    dead: 0,
    cancelled: 0,
  }
  const rules: readonly (readonly [FinalState, number, number | null])[] = [
    ['completed', retention.completedMs, retention.maxCompleted],
    ['dead', retention.deadMs, retention.maxDead],
    ['cancelled', retention.cancelledMs, retention.maxCancelled],
  ]
  let pruned = 0
  for (const [state, keepMs, keepCount] of rules) {
    const surplus = keepCount === null ? 0 : totals[state] - keepCount
    const oldest = engine.db.all<EndedJob>('oldestEnded', state, limit - pruned)
    const goes = oldest.filter(({ finished }, place) => finished + keepMs <= now || place < surplus)
    for (const { seq, queue, finished } of goes) {
      const end = engine.db.get<EndedRow>('endedBySeq', seq)
      if (end === undefined || checkEnded(seq, end).finished !== finished)
        throw damaged(`job ${seq} is in the wrong order`)
      engine.forget(seq, queue, state)
    }
    pruned += goes.length
  }
  if (engine.ownsFile) shrink(engine)
  return { pruned }
}

/** Free pages that are left to new jobs, because moving pages costs more than what was pruned. */
const MIN_FREE_PAGES = 4_096
const MIN_FREE_SHARE = 0.25
/** In one transaction: 2 MB. */
const MAX_FREED_PAGES = 500

/** After a rush, the file gets smaller with each prune. While as much comes as goes, its free pages are used again. */
function shrink({ db }: Engine): void {
  const { pages, free } = db.get<{ pages: number; free: number }>('space') ?? { pages: 0, free: 0 }
  const surplus = free - Math.max(MIN_FREE_PAGES, pages * MIN_FREE_SHARE)
  if (surplus > 0) db.freePages(Math.min(MAX_FREED_PAGES, Math.ceil(surplus)))
}

/** The leader also takes over at once from processes that are provably gone: a rescue waits until leases could be renewed. */
export function lead(engine: Engine, candidate: WorkerId, ttlMs: number): boolean {
  if (ttlMs <= 0) {
    engine.db.run('resign', candidate)
    return false
  }
  checkDuration('The term of a leader', ttlMs)
  const { own } = engine.processes
  const now = engine.now()
  const leader = engine.db.get<{ id: WorkerId; process: string | null }>('leader')
  if (leader !== undefined && leader.id !== candidate && isGone(engine, leader))
    engine.db.run('resign', leader.id)
  const leads = engine.db.run('lead', candidate, now + Math.round(ttlMs), own, now) === 1
  if (leads) engine.rescued(rescueGone(engine, MAX_BATCH))
  return leads
}
