/** Schedules in SQL. */
import { brokenAnswer } from '../broken-answer.ts'
import type { Schedules } from '../store.ts'
import { checkJobs, checkSchedule } from '../write-check.ts'
import { keyedJob } from './enqueue.ts'
import type { Executor } from './executor.ts'
import type { Statements } from './statements.ts'

/** If there are no schedules, one row without one. */
interface ScheduleRow {
  readonly now: number
  readonly id: string | null
  readonly spec: string
  readonly next_tick: number | null
  readonly last_tick: number | null
}

export function sqlSchedules(executor: Executor, statements: Statements): Schedules {
  return {
    async put(id, schedule) {
      checkSchedule(id, schedule)
      if (schedule === null) return (await executor.query(statements.removeSchedule, [id])).length > 0
      await executor.query(statements.putSchedule, [id, schedule.spec, schedule.nextTick])
      return true
    },
    async list() {
      const rows = await executor.query<ScheduleRow>(statements.schedules, [])
      const [first] = rows
      if (first === undefined) throw brokenAnswer('postgres', 'the list of schedules has no time')
      const schedules = rows.flatMap(({ id, spec, next_tick: nextTick, last_tick: lastTick }) =>
        id === null ? [] : [{ id, spec, nextTick, lastTick }],
      )
      return { now: first.now, schedules }
    },
    async fire(id, tick, nextTick, job) {
      checkJobs([job])
      const values = [id, tick, nextTick, keyedJob(job)]
      const [row] = await executor.query<{ outcome: 'fired' | 'already' | 'missing' }>(
        statements.fire,
        values,
      )
      if (row === undefined) throw brokenAnswer('postgres', 'the function fire returned no row')
      return row.outcome
    },
  }
}
