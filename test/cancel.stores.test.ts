/**
 * What a cancel and a pause promise while a worker runs, on every store (memory, embedded, postgres, redis, a cluster), in
 * the worker's process and from another one. The worker's handlers stop once it has claimed jobs that it has not started,
 * and go on once the cancels or the pause are acknowledged.
 */
import { holdfast, type CancelResult } from 'holdfast'
import type { Store } from 'holdfast/store'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { systemClock } from '../src/std/clock.ts'
import { EVERY_STORE, START_MS, startFleet, type Fleet } from './support/every-store.ts'
import { Signal } from './support/signal.ts'
import { busy } from './support/virtual.ts'

const JOBS = 450
const input = z.object({ n: z.int() })
const numbers = (count: number): { n: number }[] => Array.from({ length: count }, (_, n) => ({ n }))

const now = (): number => systemClock.monotonicMs()
/** A worker claims ahead as many jobs as it finishes in 50 ms, so jobs have to take some time. */
const JOB_MS = 3

const SLOTS = 4
/** The handlers stop once the worker holds this many jobs that it has not started. */
const HELD = 4

/** What a worker has claimed, started and ended, and a gate where its handlers wait. */
class Watch {
  readonly news = new Signal()
  /** Jobs that ended for good. */
  readonly ended = new Set<string>()
  readonly released = new Set<string>()
  readonly #startedMs = new Map<string, number[]>()
  readonly #unstarted = new Set<string>()
  /** Claimed and not settled. */
  readonly #open = new Set<string>()
  #running = 0
  #isStopped = false
  #cycles = 0
  #stop: (unstarted: readonly string[]) => void = () => undefined
  #goOn: () => void = () => undefined
  readonly #goesOn = new Promise<void>((resolve) => void (this.#goOn = resolve))
  /** Resolves to the jobs that the worker has claimed and not started, once its handlers have stopped. */
  readonly stopped = new Promise<readonly string[]>((resolve) => void (this.#stop = resolve))

  /** Whether the worker has nothing, and no claim of it is on its way. */
  get isIdle(): boolean {
    return this.#open.size + this.#cycles === 0
  }

  goOn(): void {
    this.#goOn()
  }

  readonly noteEnd = ({ id }: { readonly id: string }): void => {
    this.ended.add(id)
    this.#forget(id)
  }

  readonly noteRelease = ({ id }: { readonly id: string }): void => {
    this.released.add(id)
    this.#forget(id)
  }

  async run(id: string): Promise<void> {
    this.#unstarted.delete(id)
    this.#running++
    this.#startedMs.set(id, [...(this.#startedMs.get(id) ?? []), now()])
    // With a slot to spare, the worker would go on to start what it holds.
    if (!this.#isStopped && this.#running === SLOTS && this.#unstarted.size >= HELD) {
      this.#isStopped = true
      this.#stop([...this.#unstarted])
    }
    await busy(systemClock, JOB_MS)
    if (this.#isStopped) await this.#goesOn
    this.#running--
  }

  /** The jobs among these that were started after this time. */
  startedAfter(ids: readonly string[], ms: number): string[] {
    return ids.filter((id) => this.#startedMs.get(id)?.some((startedMs) => startedMs > ms))
  }

  /** The store as the worker uses it. */
  over(store: Store): Store {
    return {
      ...store,
      cycle: async (request) => {
        this.#cycles++
        try {
          const answer = await store.cycle(request)
          for (const { id } of answer.leases.flatMap(({ jobs }) => jobs)) {
            this.#open.add(id)
            this.#unstarted.add(id)
          }
          return answer
        } finally {
          this.#cycles--
          this.news.notify()
        }
      },
    }
  }

  #forget(id: string): void {
    this.#unstarted.delete(id)
    this.#open.delete(id)
    this.news.notify()
  }
}

describe.each(EVERY_STORE)('on $name', ({ missing, start }) => {
  if (missing !== undefined && missing() !== '') return test.skip(missing(), () => undefined)

  let fleet: Fleet
  beforeAll(async () => {
    fleet = await startFleet(start)
  }, START_MS)
  afterAll(() => fleet.close())

  /** A process with a queue of its own. */
  const open = (queue: string, watch: Watch) => {
    const store = watch.over(fleet.connect())
    const hf = holdfast({ store, queues: { [queue]: {} }, logger: false, timeout: '30s' })
    hf.on('job.released', watch.noteRelease)
    hf.on('job.completed', watch.noteEnd)
    hf.on('job.cancelled', watch.noteEnd)
    const run = ({ job: { id } }: { job: { id: string } }): Promise<void> => watch.run(id)
    const job = hf.job({ name: `work-${queue}`, queue, input, retry: { attempts: 1 }, run })
    const counts = async () => (await hf.queues()).find((one) => one.queue === queue)
    return { hf, job, counts }
  }

  test.each(['here', 'elsewhere'] as const)(
    'once a cancel is acknowledged no handler starts, and the answer is true: a worker %s',
    async (where) => {
      const queue = `cancel-${where}`
      const watch = new Watch()
      const worker = open(queue, watch)
      await using _ = worker.hf
      const other = where === 'here' ? worker : open(queue, new Watch())
      await using __ = other.hf
      const { ids } = await other.job.enqueueMany(numbers(JOBS))
      await worker.hf.work({ queues: [queue], concurrency: SLOTS, poll: 100 })
      const held = await watch.stopped
      const results = new Map<string, { readonly result: CancelResult; readonly ms: number }>()
      const cancel = async (id: string): Promise<void> => {
        const handle = await other.job.get(id)
        const result = await handle!.cancel('not needed')
        results.set(id, { result, ms: now() })
        if (result === 'cancelled') watch.noteEnd({ id })
      }
      // All jobs that the worker holds and has not started, and the last ones, few of which it has claimed.
      await Promise.all([...held, ...ids.slice(-30).filter((id) => !held.includes(id))].map(cancel))
      watch.goOn()
      await watch.news.until(() => watch.ended.size === JOBS)
      expect((await other.counts())?.counts).toMatchObject({ ready: 0, running: 0 })
      expect([...results].flatMap(([id, { ms }]) => watch.startedAfter([id], ms))).toEqual([])
      expect(held.map((id) => results.get(id)?.result)).not.toContain('too_late')
      for (const [id, { result }] of results) {
        const state = await (await other.job.get(id))!.state()
        if (result === 'cancelled') expect([id, state]).toEqual([id, 'cancelled'])
        else expect(['completed', 'cancelled']).toContain(state)
        if (result === 'too_late') expect([id, state]).toEqual([id, 'completed'])
      }
      const later = await other.job.enqueue({ n: 0 }, { in: '1h' })
      expect(await later.cancel('not needed')).toBe('cancelled')
    },
  )

  test.each(['here', 'elsewhere'] as const)(
    'once a queue is paused a worker %s gives back what it has not started, without using an attempt',
    async (where) => {
      const queue = `pause-${where}`
      const watch = new Watch()
      const worker = open(queue, watch)
      await using _ = worker.hf
      const other = where === 'here' ? worker : open(queue, new Watch())
      await using __ = other.hf
      const { ids } = await other.job.enqueueMany(numbers(JOBS))
      await worker.hf.work({ queues: [queue], concurrency: SLOTS, poll: 100 })
      const held = await watch.stopped
      await other.hf.pause(queue)
      const pausedMs = now()
      const givenBack = (): Promise<void> =>
        watch.news.until(() => expect(held.filter((id) => !watch.released.has(id))).toEqual([]))
      // A worker elsewhere hears of the pause within a second, and may start jobs until then.
      if (where === 'elsewhere') await givenBack()
      watch.goOn()
      await givenBack()
      await watch.news.until(() => watch.isIdle)
      expect(await other.counts()).toMatchObject({ paused: true, counts: { running: 0 } })
      expect(watch.startedAfter(ids, pausedMs + (where === 'here' ? 0 : 1_000))).toEqual([])
      for (const id of held) expect(await (await other.job.get(id))!.read()).toMatchObject({ attempt: 0 })
      await other.hf.resume(queue)
      await watch.news.until(() => watch.ended.size === JOBS)
      expect((await other.counts())?.counts.completed).toBe(JOBS)
    },
  )
})
