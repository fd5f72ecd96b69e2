/**
 * A schedule as the store keeps it: JSON text that only this file reads. It contains the whole job, so that any leader
 * can fire it, whether or not it knows the job.
 */
import { createHash } from 'node:crypto'
import type { JobId } from '../job/ids.ts'
import type { NewJob } from '../job/record.ts'
import type { StoredSchedule } from '../stores/store.ts'
import type { Rules } from './spec.ts'

export type JobTemplate = Omit<NewJob, 'id' | 'due'>

export interface ScheduleFacts extends Rules {
  readonly id: string
  readonly job: JobTemplate
  readonly paused: boolean
  /**
   * Created with the schedule. The ids of its jobs derive from it, so a schedule that is removed and created again has
   * new ids.
   */
  readonly seed: string
  readonly nextTick: number | null
  readonly lastTick: number | null
}

const VERSION = 1

export function writeSpec(facts: Omit<ScheduleFacts, 'id' | 'nextTick' | 'lastTick'>): string {
  const { timing, catchUp, catchUpLimit, overlap, jitterMs, job, paused, seed } = facts
  return JSON.stringify({ v: VERSION, timing, catchUp, catchUpLimit, overlap, jitterMs, job, paused, seed })
}

/** Null for a schedule of a newer version. */
export function readStored({ id, spec, nextTick, lastTick }: StoredSchedule): ScheduleFacts | null {
  const { v, ...facts } = JSON.parse(spec) as { v: number } & Omit<
    ScheduleFacts,
    'id' | 'nextTick' | 'lastTick'
  >
  return v === VERSION ? { ...facts, id, nextTick, lastTick } : null
}

/** Id of a tick's job: a UUIDv7 of the tick's time, the same in every process. */
export function tickJobId({ id, seed }: Pick<ScheduleFacts, 'id' | 'seed'>, tick: number): JobId {
  const hash = createHash('sha256').update(`${seed} ${tick} ${id}`).digest('hex')
  const time = Math.floor(tick).toString(16).padStart(12, '0')
  const variant = (0x8 | (Number.parseInt(hash.charAt(3), 16) & 0x3)).toString(16)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hash.slice(0, 3)}-${variant}${hash.slice(4, 7)}-${hash.slice(7, 19)}` as JobId
}
