import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { CycleRequest } from '../stores/store.ts'
import { alone, busy, deferred, type Line } from '../../test/support/virtual.ts'

function claimLimits(line: Line): number[] {
  return line
    .callsTo('cycle')
    .flatMap(({ args }) => (args[0] as CycleRequest).claim ?? [])
    .map((claim) => claim.limit)
}

describe('a worker', () => {
  test('runs a job from enqueue to result', async () => {
    const { hf, world, told, clock } = alone()
    const job = hf.job({
      name: 'double',
      input: z.number(),
      async run({ input }) {
        await busy(clock, 100)
        return input * 2
      },
    })
    const worker = await hf.work()
    const { id } = await job.enqueue(21)
    await world.until(() => told.of('job.completed').length === 1)
    expect(told.about(id)).toEqual(['job.enqueued', 'job.started', 'job.completed'])
    expect(told.of('job.completed')[0]).toEqual({
      id,
      job: 'double',
      queue: 'default',
      worker: worker.id,
      attempt: 1,
      maxAttempts: 4,
      correlationId: id,
      waitMs: 0,
      durationMs: 100,
    })
    expect(await world.record(id)).toMatchObject({ state: 'completed', result: '42', runMs: 100, attempt: 1 })
  })

  test('gives the handler all that it needs to know', async () => {
    const { hf, world, told } = alone()
    let seen: unknown
    const job = hf.job({
      name: 'facts',
      run(context) {
        const { job: info, fence, signal, input, ctx } = context
        seen = { info, fence, aborted: signal.aborted, input, ctx }
      },
    })
    const { id } = await job.enqueue(undefined, { tags: ['t'], metadata: { tenant: 'acme' }, in: '1m' })
    const enqueuedAt = new Date(world.clock.now())
    await hf.work()
    await world.until(() => told.of('job.completed').length === 1)
    expect(seen).toEqual({
      info: {
        id,
        name: 'facts',
        queue: 'default',
        attempt: 1,
        maxAttempts: 4,
        crashes: 0,
        enqueuedAt,
        correlationId: id,
        tags: ['t'],
        metadata: { tenant: 'acme' },
      },
      fence: 1n,
      aborted: false,
      input: undefined,
      ctx: {},
    })
  })

  test('runs as many at once as it has slots, and never more', async () => {
    const { hf, world, told, clock } = alone()
    let running = 0
    let most = 0
    const job = hf.job({
      name: 'busy',
      input: z.number(),
      async run() {
        most = Math.max(most, ++running)
        await busy(clock, 100)
        running--
      },
    })
    await job.enqueueMany(Array.from({ length: 40 }, (_, n) => n))
    await hf.work({ concurrency: 7 })
    await world.until(() => told.of('job.completed').length === 40)
    expect(most).toBe(7)
    expect(world.nowMs).toBeLessThan(700)
  })

  test('takes five slots and the jobs of all queues unless told', async () => {
    const { hf, world, told } = alone({ queues: { default: {}, mail: {} } })
    const gate = deferred()
    const job = hf.job({ name: 'job', input: z.number(), run: () => gate.promise })
    await job.enqueueMany([1, 2, 3, 4, 5, 6])
    await job.enqueueMany([7, 8, 9], { queue: 'mail' })
    const worker = await hf.work()
    await world.advance(1_000)
    expect(worker.health()).toMatchObject({ running: 5, slots: 5 })
    expect(told.of('worker.started')).toEqual([
      { worker: worker.id, name: 'worker', queues: ['default', 'mail'], concurrency: 5 },
    ])
    gate.resolve()
    await world.until(() => told.of('job.completed').length === 9)
  })

  test('runs the jobs of a queue by priority, and the oldest first among equals', async () => {
    const { hf, world, told } = alone()
    const order: string[] = []
    const job = hf.job({ name: 'job', input: z.string(), run: ({ input }) => void order.push(input) })
    await job.enqueue('background', { priority: 'background' })
    await job.enqueue('first')
    await job.enqueue('urgent', { priority: 'urgent' })
    await job.enqueue('second')
    await job.enqueue('high', { priority: 'high' })
    await hf.work({ concurrency: 1 })
    await world.until(() => told.of('job.completed').length === 5)
    expect(order).toEqual(['urgent', 'high', 'first', 'second', 'background'])
  })

  test('lets an old background job overtake a new urgent one after eight minutes', async () => {
    const { hf, world, told } = alone()
    const order: string[] = []
    const job = hf.job({ name: 'job', input: z.string(), run: ({ input }) => void order.push(input) })
    await job.enqueue('old', { priority: 'background' })
    await world.advance(8 * 60_000 + 1)
    await job.enqueue('new', { priority: 'urgent' })
    await hf.work({ concurrency: 1 })
    await world.until(() => told.of('job.completed').length === 2)
    expect(order).toEqual(['old', 'new'])
  })

  test('runs only the queues that it was given', async () => {
    const { hf, world } = alone({ queues: { default: {}, mail: {} } })
    const ran: string[] = []
    const job = hf.job({ name: 'job', run: ({ job: { queue } }) => void ran.push(queue) })
    await job.enqueue()
    await job.enqueue(undefined, { queue: 'mail' })
    await hf.work({ queues: ['mail'] })
    await world.advance(10_000)
    expect(ran).toEqual(['mail'])
  })

  test('hands out a fence that grows with every claim of a job', async () => {
    const { hf, world, told } = alone()
    const fences: bigint[] = []
    const job = hf.job({
      name: 'fenced',
      run({ fence, job: { attempt } }) {
        fences.push(fence)
        if (attempt < 4) throw new Error('again')
      },
    })
    await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.completed').length === 1)
    expect(fences).toHaveLength(4)
    expect([...fences].sort((a, b) => Number(a - b))).toEqual(fences)
    expect(new Set(fences).size).toBe(4)
  })

  test('validates the input again before the handler: a deploy may have changed the schema', async () => {
    const { hf, world } = alone()
    const old = world.process()
    const { id } = await old.hf
      .job({ name: 'mail', input: z.object({ to: z.string() }), run: () => undefined })
      .enqueue({ to: 'a' })
    let runs = 0
    hf.job({ name: 'mail', input: z.object({ to: z.string(), from: z.string() }), run: () => void runs++ })
    await hf.work()
    await world.advance(1_000)
    expect(runs).toBe(0)
    expect(await world.record(id)).toMatchObject({
      state: 'dead',
      error: { kind: 'permanent', code: 'HF_INVALID_INPUT', message: expect.stringMatching(/from/) },
    })
  })
})

describe('the claims of a worker', () => {
  test('ask for no more than its free slots while it does not know how fast it is', async () => {
    const { hf, world, line } = alone()
    const gate = deferred()
    const job = hf.job({ name: 'slow', input: z.number(), run: () => gate.promise })
    await job.enqueueMany(Array.from({ length: 50 }, (_, n) => n))
    await hf.work({ concurrency: 4 })
    await world.advance(10_000)
    expect(Math.max(...claimLimits(line))).toBe(4)
    expect(await world.counts()).toEqual({ running: 4, ready: 46 })
    gate.resolve()
    await world.advance(1_000)
  })

  test('run ahead by what it finishes in about 50 ms, and no further', async () => {
    const { hf, world, told, line, clock } = alone()
    let held = 0
    let mostHeld = 0
    const job = hf.job({ name: 'quick', input: z.number(), run: () => busy(clock, 2) })
    hf.on('job.started', () => void (held = worker.health().running + worker.health().waiting))
    hf.on('job.started', () => void (mostHeld = Math.max(mostHeld, held)))
    await job.enqueueMany(Array.from({ length: 3_000 }, (_, n) => n))
    const worker = await hf.work({ concurrency: 4 })
    await world.until(() => told.of('job.completed').length === 3_000)
    // Four slots of 2 ms each finish 100 jobs in 50 ms.
    expect(mostHeld).toBeGreaterThan(50)
    expect(mostHeld).toBeLessThanOrEqual(4 + 110)
    expect(claimLimits(line).length).toBeLessThan(3_000 / 20)
  })

  test('are never larger than the batch size, where one is set', async () => {
    const { hf, world, told, line } = alone()
    const job = hf.job({ name: 'quick', input: z.number(), run: () => undefined })
    await job.enqueueMany(Array.from({ length: 200 }, (_, n) => n))
    await hf.work({ concurrency: 50, batchSize: 3 })
    await world.until(() => told.of('job.completed').length === 200)
    expect(Math.max(...claimLimits(line))).toBe(3)
  })

  test('travel together with the settles of what has finished', async () => {
    const { hf, world, told, line } = alone()
    const job = hf.job({ name: 'quick', input: z.number(), run: () => undefined })
    await job.enqueueMany(Array.from({ length: 500 }, (_, n) => n))
    await hf.work({ concurrency: 10 })
    await world.until(() => told.of('job.completed').length === 500)
    expect(line.callsTo('cycle').length).toBeLessThan(60)
  })

  test('keep to the weights of the queues while all of them have work', async () => {
    const { hf, world, told, clock } = alone({ queues: { heavy: {}, light: {} } })
    const job = hf.job({ name: 'job', input: z.number(), run: () => busy(clock, 10) })
    const inputs = Array.from({ length: 2_000 }, (_, n) => n)
    await job.enqueueMany(inputs, { queue: 'light' })
    await job.enqueueMany(inputs, { queue: 'heavy' })
    await hf.work({ concurrency: 5, queues: { heavy: 2, light: 1 } })
    await world.until(() => told.of('job.completed').length >= 900)
    const heavy = told.of('job.completed').filter((event) => event.queue === 'heavy').length
    const share = heavy / told.of('job.completed').length
    expect(share).toBeGreaterThan(0.6)
    expect(share).toBeLessThan(0.73)
  })

  test('owe nothing to a queue that had no work: it comes back level, not with a debt to collect', async () => {
    const { hf, world, told, clock } = alone({ queues: { busy: {}, quiet: {} } })
    const job = hf.job({ name: 'job', input: z.number(), run: () => busy(clock, 1) })
    const inputs = Array.from({ length: 4_000 }, (_, n) => n)
    await job.enqueueMany(inputs, { queue: 'busy' })
    await hf.work({ concurrency: 5, poll: '1h' })
    await world.until(() => told.of('job.completed').length >= 2_000)
    await job.enqueueMany(inputs.slice(0, 1_000), { queue: 'quiet' })
    // What is prefetched already comes first.
    const before = told.of('job.completed').length + 300
    await world.until(() => told.of('job.completed').length >= before + 600)
    const since = told.of('job.completed').slice(before)
    const share = since.filter((event) => event.queue === 'busy').length / since.length
    expect(share).toBeGreaterThan(0.3)
    expect(share).toBeLessThan(0.7)
  })
})
