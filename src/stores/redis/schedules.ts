/**
 * Schedules, stored as "last next spec", with - for no tick. One script fires a tick and writes its job. On a cluster the
 * schedule and the job's queue are in different shards: see `cluster/outbox.ts`.
 */
import type { Schedules, StoredSchedule } from '../store.ts'
import { checkJobs, checkSchedule } from '../write-check.ts'
import { keyedJob, refusalOf } from './enqueue.ts'
import type { Run } from './run.ts'
import type { Shards } from './shards.ts'

type Fire = Schedules['fire']

export function redisSchedules(run: Run, { control }: Shards, fire: Fire): Schedules {
  return {
    async put(id, schedule) {
      checkSchedule(id, schedule)
      const args = schedule === null ? [id] : [id, schedule.nextTick ?? '', schedule.spec]
      return (await run<number>(control, 'put_schedule', args)) === 1
    },
    async list() {
      const [now, flat] = await run<[now: string, flat: string[]]>(control, 'list_schedules', [])
      return { now: Number(now), schedules: readAll(flat) }
    },
    async fire(id, tick, nextTick, job) {
      checkJobs([job])
      return fire(id, tick, nextTick, job)
    },
  }
}

/** For a server without Cluster, which has one shard. */
export function fireAtOnce(run: Run, { control }: Shards): Fire {
  return async (id, tick, nextTick, job) => {
    try {
      const args = [id, tick, nextTick ?? '', ...keyedJob(job)]
      return await run<Awaited<ReturnType<Fire>>>(control, 'fire', args)
    } catch (error) {
      throw refusalOf(error)
    }
  }
}

function readAll(flat: readonly string[]): StoredSchedule[] {
  const schedules: StoredSchedule[] = []
  for (let at = 0; at < flat.length; at += 2) schedules.push(readOne(flat[at] ?? '', flat[at + 1] ?? ''))
  return schedules
}

function readOne(id: string, text: string): StoredSchedule {
  const [, last = '', next = '', spec = ''] = /^(\S+) (\S+) (.*)$/s.exec(text) ?? []
  return { id, spec, nextTick: tickOf(next), lastTick: tickOf(last) }
}

function tickOf(text: string): number | null {
  return text === '-' ? null : Number(text)
}
