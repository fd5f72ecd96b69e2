/** Schedules in memory. A tick's job is written in the same step that advances the schedule. */
import type { StoredSchedule, Schedules } from '../store.ts'
import { checkJobs, checkSchedule } from '../write-check.ts'
import { enqueue } from './core.ts'
import type { MemoryState } from './state.ts'
import type { Guard } from './upkeep.ts'
import type { FlushId } from '../../job/ids.ts'

export function memorySchedules(state: MemoryState, step: Guard): Schedules {
  const schedules = new Map<string, StoredSchedule>()
  return {
    put: (id, schedule) =>
      step(() => {
        checkSchedule(id, schedule)
        if (schedule === null) return schedules.delete(id)
        const { spec, nextTick } = schedule
        schedules.set(id, { id, spec, nextTick, lastTick: schedules.get(id)?.lastTick ?? null })
        return true
      }),
    list: () => step(() => ({ now: state.now(), schedules: [...schedules.values()] })),
    fire: (id, tick, nextTick, job) =>
      step(() => {
        const schedule = schedules.get(id)
        if (schedule === undefined) return 'missing'
        if (isFired(schedule, tick, state.now())) return 'already'
        checkJobs([job])
        schedules.set(id, { ...schedule, lastTick: tick, nextTick })
        // The job's own id serves as the flush id, because this step happens only once.
        enqueue(state, { id: job.id as string as FlushId, jobs: [job] })
        return 'fired'
      }),
  }
}

/** If the last tick is in the future, the clock has been set back since; it then blocks only itself. */
function isFired({ lastTick }: StoredSchedule, tick: number, now: number): boolean {
  if (lastTick === null || tick > lastTick) return false
  return tick === lastTick || lastTick <= now
}
