/**
 * Fires ticks of schedules on a cluster, where a schedule and its job's queue are different shards: the schedule
 * advances and the job goes into the outbox in one step. Then the process that fired it delivers the job to its queue
 * and removes it from the outbox; if that fails, the next upkeep of any process does. A job that is delivered twice is
 * recognised by its sender.
 */
import type { NewJob } from '../../../job/record.ts'
import type { Schedules } from '../../store.ts'
import type { RedisValue } from '../driver.ts'
import { keyedJob } from '../enqueue.ts'
import type { Run } from '../run.ts'
import { isReply } from '../server-errors.ts'
import type { Shards } from '../shards.ts'

type Fired = Awaited<ReturnType<Schedules['fire']>>
/** As job_at of insert.lua takes it. */
type JobArgs = readonly [id: string, queue: string, ...rest: RedisValue[]]

const MOST_AT_ONCE = 100

export class Outbox {
  readonly #run: Run
  readonly #shards: Shards

  constructor(run: Run, shards: Shards) {
    this.#run = run
    this.#shards = shards
  }

  async fire(id: string, tick: number, nextTick: number | null, job: NewJob): Promise<Fired> {
    const args = keyedJob(job) as unknown as JobArgs
    const fired = await this.#run<Fired>(this.#shards.control, 'fire_later', [
      id,
      tick,
      nextTick ?? '',
      ...args,
    ])
    // The tick has fired and the job is safe: if this delivery fails, an upkeep delivers it.
    if (fired === 'fired') await this.#deliver([args]).catch(() => undefined)
    return fired
  }

  /** Delivers what other processes have left here. */
  async drain(): Promise<void> {
    for (;;) {
      const jobs = await this.#run<JobArgs[]>(this.#shards.control, 'outbox', [MOST_AT_ONCE])
      if (jobs.length === 0) return
      await this.#deliver(jobs)
    }
  }

  async #deliver(jobs: readonly JobArgs[]): Promise<void> {
    await this.#shards.know(jobs.map(([, queue]) => queue))
    await Promise.all(jobs.map((job) => this.#insert(job)))
    const ids = jobs.map(([id]) => id)
    await this.#run(this.#shards.control, 'remove_from_outbox', ids)
  }

  async #insert(job: JobArgs): Promise<void> {
    const [id, queue] = job
    try {
      await this.#run(this.#shards.of(queue), 'enqueue_unique', [`fire:${id}`, 1, 1, ...job])
    } catch (error) {
      // It was delivered before.
      if (!isReply(error) || !error.message.startsWith('HFKNOWN')) throw error
    }
  }
}
