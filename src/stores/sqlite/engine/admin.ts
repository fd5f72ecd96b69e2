/** Administration: what people read and change. */
import type { JobId } from '../../../job/ids.ts'
import type { JobRecord } from '../../../job/record.ts'
import type { BulkAction, CancelAnswer, ChangeAnswer, JobEdit, JobFilter, QueueStatus } from '../../store.ts'
import type { Engine } from './engine.ts'
import { scan } from './list.ts'
import { Places } from './places.ts'
import { uniqueOf, type EndedRow, type JobRow } from './rows.ts'

export function get(engine: Engine, id: JobId): JobRecord | null {
  const row = engine.job(id)
  return row === undefined ? null : new Places(engine).record(row)
}

interface QueueRow {
  readonly name: string
  readonly paused: number
  readonly scheduled: number
  readonly ready: number
  readonly running: number
  readonly completed: number
  readonly dead: number
  readonly cancelled: number
}

export function queues(engine: Engine): readonly QueueStatus[] {
  return engine.db.all<QueueRow>('queues').map(({ name: queue, paused, ...row }) => {
    const { scheduled, ready, running, completed, dead, cancelled } = row
    const counts = { scheduled, blocked: 0, ready, running, completed, dead, cancelled }
    return {
      queue,
      paused: paused === 1,
      counts,
      oldestReadyAt: ready === 0 ? null : oldestReadyAt(engine, queue),
    }
  })
}

/** Jobs of one head start are in order of due time. */
function oldestReadyAt(engine: Engine, queue: string): number | null {
  let oldest: number | null = null
  for (const suspect of [0, 1]) {
    let head = Number.MIN_SAFE_INTEGER
    for (;;) {
      const first = engine.db.get<{ head: number; due: number }>('nextHead', queue, suspect, head)
      if (first === undefined) break
      oldest = Math.min(oldest ?? first.due, first.due)
      head = first.head
    }
  }
  return oldest
}

export function setPaused(engine: Engine, queue: string, paused: boolean): void {
  engine.db.run('setPaused', queue, paused ? 1 : 0)
  engine.hint({ type: paused ? 'paused' : 'ready', queue })
}

export function cancel(engine: Engine, id: JobId, reason: string | null): CancelAnswer {
  const row = engine.job(id)
  return row === undefined ? 'missing' : cancelJob(engine, row, new Places(engine), reason)
}

function cancelJob(engine: Engine, row: JobRow, places: Places, reason: string | null): CancelAnswer {
  if (engine.db.get('endedBySeq', row.seq) !== undefined) return 'final'
  const state = engine.waitingState(row)
  if (state !== null) {
    engine.takeWaiting(row, state)
    engine.freeKey(row)
    engine.finish(row, 'cancelled', { reason })
    return 'cancelled'
  }
  const { lease, position } = places.running(row)
  const { token, worker } = lease
  if (engine.db.get<{ heard: number }>('cancelAt', token, position)?.heard === 1) return 'heard'
  // The first reason stays.
  engine.db.run('requestCancel', token, position, reason)
  engine.hint({ type: 'cancel', worker })
  return 'requested'
}

export function change(
  engine: Engine,
  filter: JobFilter,
  action: BulkAction,
  limit: number,
  after: JobId | null,
  maxLook?: number,
): ChangeAnswer {
  const { found, ...page } = scan(engine, { filter, order: 'up', after, limit }, maxLook)
  const places = new Places(engine)
  const changed = found.filter(({ row }) => apply(engine, row, places, action)).length
  return { changed, skipped: found.length - changed, ...page }
}

function apply(engine: Engine, row: JobRow, places: Places, action: BulkAction): boolean {
  if (action.type === 'cancel') return cancelJob(engine, row, places, action.reason) !== 'final'
  const end = engine.db.get<EndedRow>('endedBySeq', row.seq)
  if (end === undefined) return false
  if (action.type === 'replay')
    return end.state === 'dead' && replay(engine, row, action.payload ?? row.payload)
  engine.forget(row.seq, row.queue, end.state)
  return true
}

/** Ready with all its attempts again; left if another job holds its key. */
function replay(engine: Engine, row: JobRow, payload: string): boolean {
  const unique = uniqueOf(row)
  if (unique !== null) {
    const holder = engine.keyHolder(unique.key)
    if (holder !== undefined && holder !== row.id) return false
    engine.takeKey(unique, row.id)
  }
  engine.db.runOne('outOfEnded', row.seq)
  engine.count(row.queue, 'dead', -1)
  const again = { ...row, payload, attempt: 0, crashes: 0, due: engine.now() }
  engine.rewrite(again)
  engine.putWaiting(again, 'ready')
  return true
}

export function edit(engine: Engine, id: JobId, change: JobEdit): 'edited' | 'running' | 'final' | 'missing' {
  const row = engine.job(id)
  if (row === undefined) return 'missing'
  const place = new Places(engine).of(row)
  if (place.state === 'ended') return 'final'
  if (place.state === 'running') return 'running'
  const { payload = row.payload, rank, due: newDue } = change
  const due = newDue === undefined ? row.due : engine.dueAt(newDue)
  const edited = {
    ...row,
    payload,
    due,
    ...(rank === undefined ? {} : { priority: rank.priority, head: Math.round(rank.headStartMs) }),
  }
  engine.takeWaiting(row, place.state)
  engine.rewrite(edited)
  engine.putWaiting(edited, due > engine.now() ? 'scheduled' : 'ready')
  return 'edited'
}
