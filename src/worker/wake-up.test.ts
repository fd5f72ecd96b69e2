import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { ResourcesExhausted } from '../errors.ts'
import type { CycleRequest } from '../stores/store.ts'
import { alone, busy, deferred, type Call } from '../../test/support/virtual.ts'

const claims = ({ method, args }: Call): boolean =>
  method === 'cycle' && (args[0] as CycleRequest).claim !== null

describe('an idle worker', () => {
  test('starts a job at once when it is enqueued: a wake-up needs no poll', async () => {
    const { hf, world, told } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    await hf.work({ poll: '1h' })
    await world.advance(10_000)
    await job.enqueue()
    await world.advance()
    expect(told.of('job.started')).toHaveLength(1)
  })

  test('is woken by what another process enqueues', async () => {
    const { hf, world, told } = alone()
    hf.job({ name: 'job', run: () => undefined })
    await hf.work({ poll: '1h' })
    await world.advance(10_000)
    await world.process().hf.contract({ name: 'job' }).enqueue()
    await world.advance()
    expect(told.of('job.started')).toHaveLength(1)
  })

  test('finds at its next poll a job whose wake-up was lost', async () => {
    const { hf, world, told, line } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    line.losesHints = true
    await hf.work({ poll: '1s' })
    await world.advance(10_000)
    await job.enqueue()
    const tookMs = await world.until(() => told.of('job.started').length === 1)
    expect(tookMs).toBeLessThanOrEqual(1_100)
  })

  test('does not believe an empty answer that crossed a wake-up', async () => {
    const { hf, world, told, line } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    await hf.work({ poll: '10s' })
    await world.advance(1_000)
    const gate = line.hold(claims, 'reply')
    await world.until(() => gate.held() === 1)
    await job.enqueue()
    await world.advance(1)
    expect(told.of('job.started')).toHaveLength(0)
    gate.open()
    await world.advance(1)
    expect(told.of('job.started')).toHaveLength(1)
  })

  test('polls every queue, about once a second', async () => {
    const { hf, world, line } = alone({ queues: { default: {}, mail: {} } })
    hf.job({ name: 'job', run: () => undefined })
    await hf.work()
    await world.advance(60_000)
    const polled = line.calls.filter(claims).map(({ args }) => (args[0] as CycleRequest).claim?.queue)
    for (const queue of ['default', 'mail']) {
      const times = polled.filter((one) => one === queue).length
      expect(times).toBeGreaterThan(50)
      expect(times).toBeLessThan(70)
    }
  })

  test('costs no more calls than its polls, heartbeats and upkeep', async () => {
    const { hf, world, line } = alone()
    hf.job({ name: 'job', run: () => undefined })
    await hf.work()
    await world.advance(10_000)
    const before = line.calls.length
    await world.advance(60_000)
    expect(line.calls.length - before).toBeLessThan(60 * 2.5 + 20 + 20 + 20)
  })

  test('starts a delayed job when it is due, not a poll later', async () => {
    const { hf, world, told } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    await hf.work({ poll: '1h' })
    await job.enqueue(undefined, { in: 12_345 })
    await world.advance(12_344)
    expect(told.of('job.started')).toHaveLength(0)
    await world.advance(1)
    expect(told.of('job.started')).toHaveLength(1)
  })

  test('claims again as soon as its pause for resources is over, however rarely it polls', async () => {
    const { hf, world, told } = alone()
    const job = hf.job({
      name: 'job',
      input: z.number(),
      run({ input }) {
        if (input === 0) throw new ResourcesExhausted('no memory')
      },
    })
    await hf.work({ poll: '1h' })
    await world.advance(10_000)
    await job.enqueue(0)
    await world.until(() => told.of('worker.slowed').length === 1)
    await job.enqueue(1)
    await world.advance(999)
    expect(told.of('job.completed')).toHaveLength(0)
    await world.advance(10)
    expect(told.of('job.completed')).toHaveLength(1)
  })
})

describe('what a worker has claimed and cannot start', () => {
  /** A worker that was fast, and then meets jobs that hold its only slot. */
  const stall = async () => {
    const setting = alone()
    const { hf, world, told, clock } = setting
    const gate = deferred()
    const job = hf.job({
      name: 'job',
      input: z.number(),
      run: ({ input }) => (input < 500 ? busy(clock, 1) : gate.promise),
    })
    const { ids } = await job.enqueueMany(Array.from({ length: 560 }, (_, n) => n))
    const worker = await hf.work({ concurrency: 1 })
    await world.until(() => told.of('job.started').length === 501)
    return { ...setting, job, ids, worker, gate }
  }

  test('is given back after 200 ms, and no attempt is used', async () => {
    const { world, told, ids, worker, gate } = await stall()
    expect(worker.health().waiting).toBeGreaterThan(10)
    await world.advance(150)
    expect(told.of('job.released')).toHaveLength(0)
    await world.advance(60)
    expect(told.of('job.released').length).toBeGreaterThan(10)
    await world.advance(2_000)
    expect(worker.health()).toMatchObject({ running: 1, waiting: 0 })
    for (const id of ids.slice(501)) {
      expect(await world.record(id)).toMatchObject({ state: 'ready', attempt: 0 })
    }
    gate.resolve()
  })

  test('is run by another worker that is free', async () => {
    const { world, ids, gate } = await stall()
    const other = world.process()
    other.hf.job({ name: 'job', input: z.number(), run: () => 'by the other' })
    await other.hf.work()
    await world.until(() => other.told.of('job.completed').length === 59, 2_000)
    const attempts = new Set(other.told.of('job.completed').map((event) => event.attempt))
    expect([...attempts]).toEqual([1])
    expect(await world.record(ids[501]!)).toMatchObject({ state: 'completed', result: '"by the other"' })
    gate.resolve()
  })

  test('is not counted as given back at the stop', async () => {
    const { world, told, worker, gate } = await stall()
    await world.advance(3_000)
    gate.resolve()
    await world.until(() => told.of('job.completed').length === 560)
    await world.run(worker.stop())
    expect(told.of('worker.stopped')).toEqual([{ worker: worker.id, released: 0 }])
  })
})
