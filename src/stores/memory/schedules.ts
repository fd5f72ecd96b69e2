/** Schedules in memory: the last slot fired is the only truth, and it moves together with the job it fired. */
import type { StoredSchedule, Schedules } from '../store.ts'
import { enqueue } from './core.ts'
import type { MemoryState } from './state.ts'
import type { Guard } from './upkeep.ts'
import type { FlushId } from '../../job/ids.ts'

export function memorySchedules(state: MemoryState, step: Guard): Schedules {
  const schedules = new Map<string, StoredSchedule>()
  return {
    put: (schedule) =>
      step(
        () =>
          void schedules.set(schedule.id, {
            ...schedule,
            lastSlot: schedules.get(schedule.id)?.lastSlot ?? null,
          }),
      ),
    remove: (id) => step(() => schedules.delete(id)),
    list: () => step(() => ({ now: state.now(), schedules: [...schedules.values()] })),
    fire: (id, slot, nextSlot, job) =>
      step(() => {
        const schedule = schedules.get(id)
        if (schedule === undefined) return 'missing'
        if (isFired(schedule, slot, state.now())) return 'already'
        schedules.set(id, { ...schedule, lastSlot: slot, nextSlot })
        // The job's own id serves as the flush: this step can happen once only.
        enqueue(state, { id: job.id as string as FlushId, jobs: [job] })
        return 'fired'
      }),
  }
}

/** A last slot in the future was fired before the clock was put back: it stands for itself alone. */
function isFired({ lastSlot }: StoredSchedule, slot: number, now: number): boolean {
  if (lastSlot === null || slot > lastSlot) return false
  return slot === lastSlot || lastSlot <= now
}
