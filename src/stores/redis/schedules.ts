/**
 * Schedules: "last next spec", - for none. A slot is fired in one script with its job. On a cluster, where a schedule
 * and its job's queue are different shards, this will take two steps and an outbox between them.
 */
import type { Schedules, StoredSchedule } from '../store.ts'
import { keyedJob, refusalOf } from './enqueue.ts'
import type { Executor } from './executor.ts'
import type { Run } from './run.ts'
import type { Shards } from './shards.ts'

type Fired = Awaited<ReturnType<Schedules['fire']>>

export function redisSchedules(executor: Executor, run: Run, { control }: Shards): Schedules {
  const key = `${control.keys[0]}schedules`
  return {
    async put({ id, spec, nextSlot }) {
      await run(control, 'put_schedule', [id, nextSlot ?? '', spec])
    },
    remove: async (id) => (await executor.command('HDEL', [key, id])) === 1,
    list: async () => readAll(await run<string[]>(control, 'list_schedules', [])),
    async fire(id, slot, nextSlot, job) {
      try {
        return await run<Fired>(control, 'fire', [id, slot, nextSlot ?? '', ...keyedJob(job)])
      } catch (error) {
        throw refusalOf(error)
      }
    },
  }
}

function readAll(flat: readonly string[]): StoredSchedule[] {
  const schedules: StoredSchedule[] = []
  for (let at = 0; at < flat.length; at += 2) schedules.push(readOne(flat[at] ?? '', flat[at + 1] ?? ''))
  return schedules
}

function readOne(id: string, text: string): StoredSchedule {
  const [, last = '', next = '', spec = ''] = /^(\S+) (\S+) (.*)$/s.exec(text) ?? []
  return { id, spec, nextSlot: slotOf(next), lastSlot: slotOf(last) }
}

function slotOf(text: string): number | null {
  return text === '-' ? null : Number(text)
}
