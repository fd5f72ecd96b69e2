/**
 * The public API for schedules. They are kept in the store, so that every process sees the same; the leader fires them
 * (see `maintenance/scheduler.ts`), this file only writes and reads them.
 */
import { HoldfastError } from '../errors.ts'
import { scheduleNotFound } from '../job/not-found.ts'
import { whole } from '../job/options.ts'
import { readUnique } from '../job/unique.ts'
import {
  readRules,
  readScheduleId,
  type CatchUp,
  type Overlap,
  type Rules,
  type ScheduleSpec,
} from '../scheduler/spec.ts'
import { readStored, writeSpec, type JobTemplate, type ScheduleFacts } from '../scheduler/stored.ts'
import { ticksOf, type Timing } from '../scheduler/timing.ts'
import type { Core } from '../core/core.ts'
import { storeTime, type StoreTime } from '../core/store-time.ts'
import type { Enqueuer } from './enqueuer.ts'

/** A snapshot of a schedule. */
export interface Schedule {
  readonly id: string
  /** The name of the job that it enqueues. */
  readonly job: string
  readonly queue: string
  /** `every` in ms, or a cron pattern with its zone. */
  readonly timing: Timing
  readonly catchUp: CatchUp
  readonly overlap: Overlap
  readonly paused: boolean
  /** The newest tick that has fired. */
  readonly lastTick: Date | null
  /** The next tick; in the past if it is late. */
  readonly nextTick: Date | null
  /** How late the next tick is; 0 if it is not. */
  readonly lateMs: number
  /** The next `count` ticks, at most 1,000. @default 5 */
  next(count?: number): readonly Date[]
  /** Stops firing until `resume()`. Ticks in between are not caught up. */
  pause(): Promise<void>
  resume(): Promise<void>
  /** Enqueues its job now, in addition to its ticks; resolves to the job's id. */
  run(): Promise<string>
  /** Removes it; jobs that it has enqueued stay. False if it was already gone. */
  remove(): Promise<boolean>
}

/** `hf.schedules` */
export interface Schedules {
  list(): Promise<readonly Schedule[]>
  get(id: string): Promise<Schedule | null>
}

/** How many ticks `next()` can be asked for. */
const NEXT = whole(0, 1_000)

export class ScheduleBook implements Schedules {
  readonly #core: Core
  readonly #enqueuer: Enqueuer
  /** Schedules in job definitions, by the job's name. */
  readonly #declared = new Map<string, ScheduleSpec>()

  constructor(core: Core, enqueuer: Enqueuer) {
    this.#core = core
    this.#enqueuer = enqueuer
  }

  /** Rejects an invalid schedule at once; stored when a worker that runs the job starts. */
  declare(job: string, spec: ScheduleSpec): void {
    readRules(spec, 'job().schedule')
    this.#declared.set(job, spec)
  }

  /**
   * Stores the schedules in these jobs' definitions unless they are stored already, with one read in a fleet that is
   * running. Putting each one, which reads all, took 0.8 s with 200 schedules on PostgreSQL, and 15 s with 1,000.
   */
  async putDeclared(jobs: Iterable<string>): Promise<void> {
    const declared = [...jobs].flatMap((job) => {
      const spec = this.#declared.get(job)
      return spec === undefined ? [] : [{ job, spec }]
    })
    if (declared.length === 0) return
    const stored = new Map((await this.#all()).schedules.map((facts) => [facts.id, facts]))
    for (const { job, spec } of declared) {
      const facts = stored.get(job)
      if (facts === undefined || !(await this.#isAs(facts, job, spec))) await this.put(job, job, spec)
    }
  }

  /** Creates or changes a schedule. Fired ticks stay fired, and a paused schedule stays paused. */
  async put(job: string, id: string, spec: ScheduleSpec): Promise<void> {
    readScheduleId(id)
    const rules = readRules(spec, 'schedule()')
    const template = await this.#template(job, id, rules, spec)
    const { found: stored, time } = await this.#find(id)
    if (stored !== undefined && stored.job.name !== job) {
      throw new HoldfastError(
        'HF_SCHEDULE_TAKEN',
        `Schedule "${id}" belongs to job "${stored.job.name}", not to "${job}".`,
      )
    }
    const { paused = false } = stored ?? {}
    const seed = this.#seedFor(stored, time)
    const isSame = stored !== undefined && JSON.stringify(stored.timing) === JSON.stringify(rules.timing)
    // Ticks that are already due stay due: a deploy must not drop them.
    const nextTick = isSame ? stored.nextTick : ticksOf(rules.timing)(time())
    await this.#write({ ...rules, id, job: template, paused, seed, nextTick, lastTick: null })
  }

  async remove(job: string, id: string): Promise<boolean> {
    const { found } = await this.#find(readScheduleId(id))
    return found?.job.name === job && this.#remove(id)
  }

  async list(): Promise<readonly Schedule[]> {
    const { schedules, time } = await this.#all()
    return schedules.map((facts) => this.#schedule(facts, time)).sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  async get(id: string): Promise<Schedule | null> {
    const { found, time } = await this.#find(readScheduleId(id))
    return found === undefined ? null : this.#schedule(found, time)
  }

  async #isAs(stored: ScheduleFacts, job: string, spec: ScheduleSpec): Promise<boolean> {
    const rules = readRules(spec, 'job().schedule')
    const template = await this.#template(job, stored.id, rules, spec)
    return writeSpec({ ...stored, ...rules, job: template }) === writeSpec(stored)
  }

  async #template(job: string, id: string, { overlap }: Rules, spec: ScheduleSpec): Promise<JobTemplate> {
    const definition = this.#core.jobNamed(job)
    const { input, options = {} } = spec
    const { id: _id, due: _due, ...template } = await this.#enqueuer.prepare({ definition, input, options })
    if (overlap !== 'skip') return template
    return { ...template, unique: readUnique(job, { key: `schedule ${id}`, while: 'unfinished' }) }
  }

  #schedule(facts: ScheduleFacts, time: StoreTime): Schedule {
    const { id, job, timing, catchUp, overlap, paused, lastTick, nextTick } = facts
    return {
      id,
      job: job.name,
      queue: job.queue,
      timing,
      catchUp,
      overlap,
      paused,
      lastTick: lastTick === null ? null : new Date(lastTick),
      nextTick: nextTick === null ? null : new Date(nextTick),
      lateMs: nextTick === null || paused ? 0 : Math.max(0, time() - nextTick),
      next: (count = 5) => upcoming(timing, NEXT(count, 'next(count)'), time()),
      pause: () => this.#setPaused(id, true),
      resume: () => this.#setPaused(id, false),
      run: () => this.#run(facts),
      remove: () => this.#remove(id),
    }
  }

  async #setPaused(id: string, paused: boolean): Promise<void> {
    const { found: facts, time } = await this.#find(id)
    if (facts === undefined) throw scheduleNotFound(id)
    if (facts.paused === paused) return
    const nextTick = paused ? facts.nextTick : ticksOf(facts.timing)(time())
    await this.#write({ ...facts, paused, nextTick, seed: this.#seedFor(facts, time) })
    this.#core.events.emit(paused ? 'schedule.paused' : 'schedule.resumed', { schedule: id })
  }

  async #run({ job }: ScheduleFacts): Promise<string> {
    const answer = await this.#enqueuer.prepared({ ...job, id: this.#core.ids.job(), due: { inMs: 0 } })
    return answer.id
  }

  #remove(id: string): Promise<boolean> {
    return this.#core.store.removeSchedule(id)
  }

  async #write(facts: ScheduleFacts): Promise<void> {
    const { id, nextTick } = facts
    const spec = writeSpec(facts)
    await this.#core.store.putSchedule(id, { spec, nextTick })
  }

  /** A new one if the store's clock was set back: ticks fire again then, and their jobs need new ids. */
  #seedFor(stored: ScheduleFacts | undefined, time: StoreTime): string {
    const isAhead = stored !== undefined && stored.lastTick !== null && stored.lastTick > time()
    return stored === undefined || isAhead ? this.#core.ids.job() : stored.seed
  }

  async #find(id: string): Promise<{ found: ScheduleFacts | undefined; time: StoreTime }> {
    const { schedules, time } = await this.#all()
    return { found: schedules.find((facts) => facts.id === id), time }
  }

  async #all(): Promise<{ schedules: readonly ScheduleFacts[]; time: StoreTime }> {
    const { store, clock } = this.#core
    const { now, schedules } = await store.schedules()
    return { schedules: schedules.flatMap((one) => readStored(one) ?? []), time: storeTime(now, clock) }
  }
}

function upcoming(timing: Timing, count: number, nowMs: number): Date[] {
  const next = ticksOf(timing)
  const found: Date[] = []
  let at: number | null = nowMs
  while (found.length < count) {
    at = next(at)
    if (at === null) break
    found.push(new Date(at))
  }
  return found
}
