/**
 * What a cancel and a pause promise beside a running worker, on every store (memory, embedded, postgres, redis, a cluster), in
 * the process of the worker and from another one. The worker's handlers stop once it has claimed jobs that it has not
 * started, and go on when the cancels or the pause are acknowledged.
 */
import { holdfast, type CancelResult } from 'holdfast'
import type { Store } from 'holdfast/store'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { sleep, systemClock } from '../src/std/clock.ts'
import { EVERY_STORE, START_MS, startFleet, type Fleet } from './support/every-store.ts'

const JOBS = 200
const input = z.object({ n: z.int() })
const numbers = (count: number): { n: number }[] => Array.from({ length: count }, (_, n) => ({ n }))
/** Far beyond what anything here takes: a loaded machine is no failure. */
const until = (fact: () => unknown): Promise<unknown> => vi.waitFor(fact, { timeout: 25_000, interval: 20 })

const now = (): number => systemClock.monotonicMs()

const SLOTS = 4
/** How many jobs the worker holds beyond those it runs when its handlers stop. */
const HELD = 4

/** What a worker has claimed and started, and a gate that its handlers wait at. */
class Watch {
  readonly #startedMs = new Map<string, number[]>()
  readonly #unstarted = new Set<string>()
  #isStopped = false
  #running = 0
  #stop: (unstarted: readonly string[]) => void = () => undefined
  #goOn: () => void = () => undefined
  readonly #goesOn = new Promise<void>((resolve) => void (this.#goOn = resolve))
  /** Resolves to the jobs that the worker has claimed and not started, when its handlers have stopped. */
  readonly stopped = new Promise<readonly string[]>((resolve) => void (this.#stop = resolve))

  goOn(): void {
    this.#goOn()
  }

  claimed(ids: readonly string[]): void {
    for (const id of ids) this.#unstarted.add(id)
  }

  released(id: string): void {
    this.#unstarted.delete(id)
  }

  async started(id: string): Promise<void> {
    this.#unstarted.delete(id)
    this.#startedMs.set(id, [...(this.#startedMs.get(id) ?? []), now()])
    this.#running++
    // With a slot to spare, the worker would go on to start what it holds.
    if (!this.#isStopped && this.#running === SLOTS && this.#unstarted.size >= HELD) {
      this.#isStopped = true
      this.#stop([...this.#unstarted])
    }
    await sleep(systemClock, 3)
    if (this.#isStopped) await this.#goesOn
    this.#running--
  }

  /** Those of the jobs that were started after this time. */
  startedAfter(ids: readonly string[], ms: number): string[] {
    return ids.filter((id) => this.#startedMs.get(id)?.some((startedMs) => startedMs > ms))
  }

  /** The store as the worker uses it. */
  over(store: Store): Store {
    return {
      ...store,
      cycle: async (request) => {
        const answer = await store.cycle(request)
        this.claimed(answer.leases.flatMap(({ jobs }) => jobs.map(({ id }) => id)))
        return answer
      },
    }
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
    hf.on('job.released', ({ id }) => watch.released(id))
    const run = ({ job: { id } }: { job: { id: string } }): Promise<void> => watch.started(id)
    const job = hf.job({ name: `work-${queue}`, queue, input, retry: { attempts: 1 }, run })
    const counts = async () => (await hf.queues()).find((one) => one.queue === queue)
    return { hf, job, counts }
  }

  test.each(['here', 'elsewhere'] as const)(
    'once a cancel is acknowledged no handler starts, and it says what it did: a worker %s',
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
      expect(held.length).toBeGreaterThanOrEqual(HELD)
      const results = new Map<string, { readonly result: CancelResult; readonly ms: number }>()
      const cancel = async (id: string): Promise<void> => {
        const handle = await other.job.get(id)
        const result = await handle!.cancel('not needed')
        results.set(id, { result, ms: now() })
      }
      // All that the worker holds and has not started, and the last ones, which it has hardly claimed.
      await Promise.all([...held, ...ids.slice(-30).filter((id) => !held.includes(id))].map(cancel))
      watch.goOn()
      await until(async () => expect((await other.counts())?.counts).toMatchObject({ ready: 0, running: 0 }))
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
      const released = new Set<string>()
      worker.hf.on('job.released', ({ id }) => void released.add(id))
      const { ids } = await other.job.enqueueMany(numbers(JOBS))
      await worker.hf.work({ queues: [queue], concurrency: SLOTS, poll: 100 })
      const held = await watch.stopped
      await other.hf.pause(queue)
      const pausedMs = now()
      const isGivenBack = (): unknown =>
        until(() => expect(held.filter((id) => !released.has(id))).toEqual([]))
      // A worker elsewhere hears of the pause within a second, and may start jobs until then.
      if (where === 'elsewhere') await isGivenBack()
      watch.goOn()
      await isGivenBack()
      await until(async () =>
        expect(await other.counts()).toMatchObject({ paused: true, counts: { running: 0 } }),
      )
      expect(watch.startedAfter(ids, pausedMs + (where === 'here' ? 0 : 1_000))).toEqual([])
      for (const id of held) expect(await (await other.job.get(id))!.read()).toMatchObject({ attempt: 0 })
      await other.hf.resume(queue)
      await until(async () => expect((await other.counts())?.counts.completed).toBe(JOBS))
    },
  )
})
