/** Schedules and notes. */
import type { NewJob } from '../../../job/record.ts'
import type { Note, ScheduleList, ScheduleSpec, StoredSchedule } from '../../store.ts'
import { checkCount, checkJobs, checkNote, checkSchedule } from '../../write-check.ts'
import { add } from './enqueue.ts'
import type { Engine } from './engine.ts'

interface ScheduleRow {
  readonly id: string
  readonly spec: string
  readonly next_tick: number | null
  readonly last_tick: number | null
}

export function putSchedule(engine: Engine, id: string, schedule: ScheduleSpec | null): boolean {
  checkSchedule(id, schedule)
  if (schedule === null) return engine.db.run('removeSchedule', id) === 1
  engine.db.run('putSchedule', id, schedule.spec, schedule.nextTick)
  return true
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
  // If the last tick is in the future, the clock has been set back since; it then blocks only itself.
  if (last !== null && tick <= last && (tick === last || last <= engine.now())) return 'already'
  checkJobs([job])
  checkCount('A tick', tick)
  checkCount('The next tick of a schedule', nextTick)
  engine.db.runOne('moveSchedule', tick, nextTick, id)
  add(engine, job)
  return 'fired'
}

export function putNote(
  engine: Engine,
  kind: string,
  id: string,
  text: string | null,
  ttlMs: number | null,
): boolean {
  checkNote(kind, id, text, ttlMs)
  const now = engine.now()
  if (text === null) return engine.db.run('removeNote', kind, id, now) === 1
  engine.db.run('putNote', kind, id, text, ttlMs === null ? null : now + Math.round(ttlMs))
  return true
}

export function listNotes(engine: Engine, kind: string): readonly Note[] {
  // The library's own rows need not be plain objects.
  return engine.db.all<Note>('notes', kind, engine.now()).map(({ id, text }) => ({ id, text }))
}
