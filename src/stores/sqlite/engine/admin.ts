/** Administration: what people read and change. */
import type { JobId } from '../../../job/ids.ts'
import type { JobRecord } from '../../../job/record.ts'
import { countOutcomes } from '../../changes.ts'
import { checkChange, checkText } from '../../write-check.ts'
import type { ChangeAnswer, ChangeOutcome, JobChange, JobEdit, JobFilter, QueueStatus } from '../../store.ts'
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
  checkText('The name of a queue', queue)
  engine.db.run('setPaused', queue, paused ? 1 : 0)
  engine.hint({ type: paused ? 'paused' : 'ready', queue })
}

function cancel(engine: Engine, row: JobRow, places: Places, reason: string | null): ChangeOutcome {
  if (endOf(engine, row) !== undefined) return 'final'
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
  wanted: JobChange,
  limit: number,
  after: JobId | null,
  maxLook?: number,
): ChangeAnswer {
  checkChange(wanted)
  const places = new Places(engine)
  const { found, ...page } = scan(engine, { filter, order: 'up', after, limit }, maxLook, places)
  return { outcomes: countOutcomes(found.map(({ row }) => apply(engine, row, places, wanted))), ...page }
}

function apply(engine: Engine, row: JobRow, places: Places, wanted: JobChange): ChangeOutcome {
  switch (wanted.type) {
    case 'cancel':
      return cancel(engine, row, places, wanted.reason)
    case 'edit':
      return edit(engine, row, places, wanted)
    case 'replay':
      return replay(engine, row, wanted.payload ?? row.payload)
    case 'discard':
      return discard(engine, row)
  }
}

function endOf(engine: Engine, row: JobRow): EndedRow | undefined {
  return engine.db.get<EndedRow>('endedBySeq', row.seq)
}

function discard(engine: Engine, row: JobRow): ChangeOutcome {
  const end = endOf(engine, row)
  if (end === undefined) return 'not_final'
  engine.forget(row.seq, row.queue, end.state)
  return 'discarded'
}

/** Ready with all its attempts again, unless another job holds its key. */
function replay(engine: Engine, row: JobRow, payload: string): ChangeOutcome {
  if (endOf(engine, row)?.state !== 'dead') return 'not_dead'
  const unique = uniqueOf(row)
  if (unique !== null) {
    const holder = engine.keyHolder(unique.key)
    if (holder !== undefined && holder !== row.id) return 'key_held'
    engine.takeKey(unique, row.id)
  }
  engine.db.runOne('outOfEnded', row.seq)
  engine.count(row.queue, 'dead', -1)
  const again = { ...row, payload, attempt: 0, crashes: 0, due: engine.now() }
  engine.rewrite(again)
  engine.putWaiting(again, 'ready')
  return 'replayed'
}

function edit(engine: Engine, row: JobRow, places: Places, wanted: JobEdit): ChangeOutcome {
  const place = places.of(row)
  if (place.state === 'ended') return 'final'
  if (place.state === 'running') return 'running'
  const { payload = row.payload, rank, due: newDue } = wanted
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
