/** Schedules in SQL. */
import type { Schedules } from '../store.ts'
import { keyedJob } from './enqueue.ts'
import type { Executor } from './executor.ts'
import type { Statements } from './statements.ts'

interface ScheduleRow {
  readonly id: string
  readonly spec: string
  readonly next_slot: number | null
  readonly last_slot: number | null
}

export function sqlSchedules(executor: Executor, statements: Statements): Schedules {
  return {
    async put({ id, spec, nextSlot }) {
      await executor.query(statements.putSchedule, [id, spec, nextSlot])
    },
    async remove(id) {
      return (await executor.query(statements.removeSchedule, [id])).length > 0
    },
    async list() {
      const rows = await executor.query<ScheduleRow>(statements.schedules, [])
      return rows.map(({ id, spec, next_slot: nextSlot, last_slot: lastSlot }) => ({
        id,
        spec,
        nextSlot,
        lastSlot,
      }))
    },
    async fire(id, slot, nextSlot, job) {
      const values = [id, slot, nextSlot, keyedJob(job)]
      const [row] = await executor.query<{ outcome: 'fired' | 'already' | 'missing' }>(
        statements.fire,
        values,
      )
      return row?.outcome ?? 'missing'
    },
  }
}
