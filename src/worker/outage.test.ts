import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  alone,
  busy,
  deferred,
  refused,
  requestLost,
  VirtualWorld,
  type Fault,
} from '../../test/support/virtual.ts'

const outages: readonly [string, Fault][] = [
  ['refuses', refused],
  ['hangs', requestLost],
]

describe.each(outages)('while the store %s', (_, fault) => {
  test('a worker waits, and claims again within five seconds of its return', async () => {
    const { hf, world, told, line } = alone()
    hf.job({ name: 'job', run: () => undefined })
    await hf.work()
    const other = world.process().hf.contract({ name: 'job' })
    // Returns at many different moments of a worker's turn.
    for (let round = 0; round < 12; round++) {
      await world.advance(3_000)
      line.breakDown(fault)
      await world.advance(20_000 + round * 777)
      await other.enqueue()
      line.mend()
      const tookMs = await world.until(() => told.of('job.completed').length === round + 1)
      expect(tookMs).toBeLessThanOrEqual(5_000)
    }
  })

  test('its health turns bad, and good again', async () => {
    const { hf, world, line, told } = alone()
    hf.job({ name: 'job', run: () => undefined })
    const worker = await hf.work()
    await world.advance(5_000)
    expect(worker.health()).toMatchObject({ healthy: true, stopping: false })
    line.breakDown(fault)
    await world.advance(9_000)
    expect(worker.health().healthy).toBe(false)
    expect(worker.health().lastPollMsAgo).toBeGreaterThan(7_000)
    line.mend()
    await world.advance(5_000)
    expect(worker.health().healthy).toBe(true)
    expect(told.of('store.down')).toHaveLength(1)
    expect(told.of('store.up')).toHaveLength(1)
  })

  test('handlers run on, and what they came to is written afterwards', async () => {
    const { hf, world, told, line, clock } = alone()
    const job = hf.job({
      name: 'job',
      async run() {
        await busy(clock, 50_000)
        return 'kept'
      },
    })
    const { id } = await job.enqueue()
    await hf.work()
    await world.advance(1_000)
    line.breakDown(fault)
    await world.advance(90_000)
    line.mend()
    await world.until(() => told.of('job.completed').length === 1, 5_000)
    expect(await world.record(id)).toMatchObject({ result: '"kept"', attempt: 1, crashes: 0 })
  })

  test('a stop ends within its bounds', async () => {
    const { hf, world, line, told } = alone()
    const gate = deferred()
    const job = hf.job({ name: 'job', run: () => gate.promise })
    await job.enqueue()
    const worker = await hf.work()
    await world.advance(1_000)
    line.breakDown(fault)
    await world.advance(20_000)
    const beganMs = world.nowMs
    await world.run(worker.stop({ drain: '10s' }))
    // Drain, patience with the handler, two tries to write, and the goodbyes of worker and upkeep.
    expect(world.nowMs - beganMs).toBeLessThanOrEqual(10_000 + 5_000 + 10_000 + 15_000 + 12_000)
    expect(told.of('worker.stopped')).toHaveLength(1)
    gate.resolve()
    line.mend()
  })

  test('an idle worker stops at once but for the goodbyes', async () => {
    const { hf, world, line } = alone()
    hf.job({ name: 'job', run: () => undefined })
    const worker = await hf.work()
    await world.advance(1_000)
    line.breakDown(fault)
    await world.advance(20_000)
    const beganMs = world.nowMs
    await world.run(worker.stop())
    expect(world.nowMs - beganMs).toBeLessThanOrEqual(30_000)
    line.mend()
  })

  test('a whole fleet outlives it for longer than a lease: nobody rescues anybody', async () => {
    const world = new VirtualWorld()
    const fleet = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const process = world.process()
        const job = process.hf.job({
          name: 'job',
          input: z.number(),
          retry: { crashes: 0 },
          run: ({ signal }) => busy(process.clock, 200_000, signal),
        })
        await process.hf.work({ concurrency: 3 })
        return { ...process, job }
      }),
    )
    await world.advance(40_000)
    await fleet[0]!.job.enqueueMany(Array.from({ length: 12 }, (_, n) => n))
    await world.advance(1_000)
    expect(await world.counts()).toEqual({ running: 12 })
    for (const { line } of fleet) line.breakDown(fault)
    await world.advance(100_000)
    for (const { line } of fleet) line.mend()
    await world.until(() => fleet.flatMap(({ told }) => told.of('job.completed')).length === 12, 150_000)
    for (const { told } of fleet) {
      expect(told.of('job.rescued')).toEqual([])
      expect(told.of('job.lost')).toEqual([])
      expect(told.of('worker.reregistered')).toEqual([])
    }
    expect(await world.counts()).toEqual({ completed: 12 })
  })
})

describe('the health of a worker', () => {
  test('is good while all its slots are taken for a long time', async () => {
    const { hf, world } = alone()
    const gate = deferred()
    const job = hf.job({ name: 'job', input: z.number(), run: () => gate.promise })
    await job.enqueueMany([1, 2, 3])
    const worker = await hf.work({ concurrency: 2 })
    await world.advance(120_000)
    expect(worker.health()).toMatchObject({ healthy: true, running: 2, slots: 2 })
    gate.resolve()
  })

  test('is bad while its slots are taken and the store is away', async () => {
    const { hf, world, line } = alone()
    const gate = deferred()
    const job = hf.job({ name: 'job', run: () => gate.promise })
    await job.enqueue()
    const worker = await hf.work({ concurrency: 1 })
    await world.advance(1_000)
    line.breakDown()
    await world.advance(10_000)
    expect(worker.health()).toMatchObject({ healthy: false, running: 1 })
    gate.resolve()
    line.mend()
  })

  test('is bad where only its claims fail: a heartbeat does not make it well', async () => {
    const { hf, world, line } = alone()
    hf.job({ name: 'job', run: () => undefined })
    const worker = await hf.work()
    await world.advance(1_000)
    line.fail('cycle', requestLost)
    await world.advance(20_000)
    expect(worker.health().healthy).toBe(false)
    line.mend()
    await world.advance(6_000)
    expect(worker.health().healthy).toBe(true)
  })

  test('is not healthy once it is stopped', async () => {
    const { hf, world } = alone()
    hf.job({ name: 'job', run: () => undefined })
    const worker = await hf.work()
    await world.run(worker.stop())
    expect(worker.health()).toMatchObject({ healthy: false, running: 0, waiting: 0 })
  })
})
