/** Schedules and notes. */
import type { NewJob } from '../../../job/record.ts'
import type { Note, ScheduleList, ScheduleSpec, StoredSchedule } from '../../store.ts'
import { add } from './enqueue.ts'
import type { Engine } from './engine.ts'

interface ScheduleRow {
  readonly id: string
  readonly spec: string
  readonly next_tick: number | null
  readonly last_tick: number | null
}

export function putSchedule(engine: Engine, { id, spec, nextTick }: ScheduleSpec): void {
  engine.db.run('putSchedule', id, spec, nextTick)
}

export function removeSchedule(engine: Engine, id: string): boolean {
  return engine.db.run('removeSchedule', id) === 1
}

export function listSchedules(engine: Engine): ScheduleList {
  const schedules = engine.db
    .all<ScheduleRow>('schedules')
    .map(({ id, spec, next_tick: nextTick, last_tick: lastTick }): StoredSchedule => ({
      id,
      spec,
      nextTick,
      lastTick,
    }))
  return { now: engine.now(), schedules }
}

export function fire(
  engine: Engine,
  id: string,
  tick: number,
  nextTick: number | null,
  job: NewJob,
): 'fired' | 'already' | 'missing' {
  const schedule = engine.db.get<ScheduleRow>('schedule', id)
  if (schedule === undefined) return 'missing'
  const { last_tick: last } = schedule
  // A last tick in the future was fired before the clock was put back: it stands for itself alone.
  if (last !== null && tick <= last && (tick === last || last <= engine.now())) return 'already'
  engine.db.runOne('moveSchedule', tick, nextTick, id)
  add(engine, job)
  return 'fired'
}

export function putNote(engine: Engine, kind: string, id: string, text: string, ttlMs: number | null): void {
  engine.db.run('putNote', kind, id, text, ttlMs === null ? null : engine.now() + Math.round(ttlMs))
}

export function removeNote(engine: Engine, kind: string, id: string): boolean {
  return engine.db.run('removeNote', kind, id, engine.now()) === 1
}

export function listNotes(engine: Engine, kind: string): readonly Note[] {
  // The library's own rows need not be plain objects.
  return engine.db.all<Note>('notes', kind, engine.now()).map(({ id, text }) => ({ id, text }))
}
