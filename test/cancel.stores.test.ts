/**
 * What a cancel and a pause promise beside a running worker, on every store (memory, embedded, postgres, redis), in the
 * process of the worker and from another one.
 */
import { holdfast, type CancelResult } from 'holdfast'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { sleep, systemClock } from '../src/std/clock.ts'
import { EVERY_STORE, START_MS, startFleet, type Fleet } from './support/every-store.ts'

const JOBS = 450
const input = z.object({ n: z.int() })
const numbers = (count: number): { n: number }[] => Array.from({ length: count }, (_, n) => ({ n }))
/** Far beyond what anything here takes: a loaded machine is no failure. */
const until = (fact: () => unknown): Promise<unknown> => vi.waitFor(fact, { timeout: 25_000, interval: 20 })

const now = (): number => systemClock.monotonicMs()

/** When the handler of each job was started. */
class Starts {
  readonly #startedMs = new Map<string, number[]>()
  count = 0

  started(id: string): void {
    this.count++
    this.#startedMs.set(id, [...(this.#startedMs.get(id) ?? []), now()])
  }

  /** Those of the jobs that were started after this time. */
  after(ids: readonly string[], ms: number): string[] {
    return ids.filter((id) => this.#startedMs.get(id)?.some((startedMs) => startedMs > ms))
  }
}

describe.each(EVERY_STORE)('on $name', ({ missing, start }) => {
  if (missing !== undefined && missing() !== '') return test.skip(missing(), () => undefined)

  let fleet: Fleet
  beforeAll(async () => {
    fleet = await startFleet(start)
  }, START_MS)
  afterAll(() => fleet.close())

  /** A process with a queue of its own, whose jobs note each start and take a few milliseconds. */
  const open = (queue: string, starts: Starts) => {
    const hf = holdfast({ store: fleet.connect(), queues: { [queue]: {} }, logger: false, timeout: '30s' })
    const job = hf.job({
      name: `work-${queue}`,
      queue,
      input,
      retry: { attempts: 1 },
      run: async ({ job: { id } }) => {
        starts.started(id)
        await sleep(systemClock, 3)
      },
    })
    return { hf, job }
  }

  test.each(['here', 'elsewhere'] as const)(
    'once a cancel is acknowledged no handler starts, and it says what it did: a worker %s',
    async (where) => {
      const queue = `cancel-${where}`
      const starts = new Starts()
      const worker = open(queue, starts)
      await using _ = worker.hf
      const other = where === 'here' ? worker : open(queue, new Starts())
      await using __ = other.hf
      const { ids } = await other.job.enqueueMany(numbers(JOBS))
      await worker.hf.work({ queues: [queue], concurrency: 8, poll: 100 })
      const results = new Map<string, { readonly result: CancelResult; readonly ms: number }>()
      // In the order in which the worker claims them, some at a time: many meet its backlog.
      const rest = ids.filter((_, index) => index % 3 !== 0)
      const line = async (): Promise<void> => {
        for (let id = rest.shift(); id !== undefined; id = rest.shift()) {
          const handle = await other.job.get(id)
          const result = await handle!.cancel('not needed')
          results.set(id, { result, ms: now() })
        }
      }
      await Promise.all(Array.from({ length: 16 }, line))
      await until(async () => {
        const [status] = (await other.hf.queues()).filter((one) => one.queue === queue)
        expect(status?.counts).toMatchObject({ ready: 0, running: 0 })
      })
      expect([...results].flatMap(([id, { ms }]) => starts.after([id], ms))).toEqual([])
      for (const [id, { result }] of results) {
        const state = await (await other.job.get(id))!.state()
        if (result === 'cancelled') expect([id, state]).toEqual([id, 'cancelled'])
        else expect(['completed', 'cancelled']).toContain(state)
        if (result === 'too_late') expect([id, state]).toEqual([id, 'completed'])
      }
      // How many of those the worker had not claimed yet depends on the machine; this one it cannot have.
      const later = await other.job.enqueue({ n: 0 }, { in: '1h' })
      expect(await later.cancel('not needed')).toBe('cancelled')
    },
  )

  test.each(['here', 'elsewhere'] as const)(
    'once a queue is paused a worker %s gives back what it has not started, without using an attempt',
    async (where) => {
      const queue = `pause-${where}`
      const starts = new Starts()
      const worker = open(queue, starts)
      await using _ = worker.hf
      const other = where === 'here' ? worker : open(queue, new Starts())
      await using __ = other.hf
      const released: string[] = []
      worker.hf.on('job.released', ({ id }) => void released.push(id))
      const { ids } = await other.job.enqueueMany(numbers(JOBS))
      await worker.hf.work({ queues: [queue], concurrency: 4, poll: 100 })
      await until(() => expect(starts.count).toBeGreaterThan(60))
      await other.hf.pause(queue)
      const pausedMs = now()
      await until(async () => {
        const [status] = (await other.hf.queues()).filter((one) => one.queue === queue)
        expect(status).toMatchObject({ paused: true, counts: { running: 0 } })
      })
      expect(starts.after(ids, pausedMs + (where === 'here' ? 0 : 1_000))).toEqual([])
      // None, if the worker had just run out of claimed jobs.
      for (const id of released) expect(await (await other.job.get(id))!.read()).toMatchObject({ attempt: 0 })
      await other.hf.resume(queue)
      await until(async () => {
        const [status] = (await other.hf.queues()).filter((one) => one.queue === queue)
        expect(status?.counts.completed).toBe(JOBS)
      })
    },
  )
})
