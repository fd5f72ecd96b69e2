/** Jobs that are handed over to an idle worker as they are enqueued. */
import { describe, expect, test } from 'vitest'
import type { CycleRequest } from '../stores/store.ts'
import {
  busy,
  refused,
  replyLost,
  VirtualWorld,
  type Call,
  type Process,
} from '../../test/support/virtual.ts'

type Fleet = Process<'default'> & { readonly world: VirtualWorld }

/** Two processes: what one enqueues is handed over to the other. */
function fleet(): Fleet & { readonly enqueue: (times?: number) => Promise<void> } {
  const world = new VirtualWorld(1, { handsOver: true })
  const contract = world.process().hf.contract({ name: 'job' })
  const enqueue = async (times = 1): Promise<void> => {
    for (let time = 0; time < times; time++) await contract.enqueue()
  }
  return { world, enqueue, ...world.process() }
}

const claims = ({ method, args }: Call): boolean =>
  method === 'cycle' && (args[0] as CycleRequest).claim !== null

describe('a job that is handed over', () => {
  test('starts without a claim', async () => {
    const { hf, world, told, line, enqueue } = fleet()
    hf.job({ name: 'job', run: () => undefined })
    await hf.work({ poll: '1h' })
    await world.advance(100)
    const before = line.calls.filter(claims).length
    await enqueue()
    await world.advance()
    expect(told.of('job.started')).toHaveLength(1)
    await world.until(() => told.of('job.completed').length === 1)
    expect(line.calls.filter(claims)).toHaveLength(before)
  })

  test('starts once if its message overtakes the answer to the offer', async () => {
    const { hf, world, told, line, enqueue } = fleet()
    hf.job({ name: 'job', run: () => undefined })
    const gate = line.hold(claims)
    await hf.work({ poll: '10s' })
    await world.until(() => gate.held() === 1)
    await enqueue()
    await world.advance(1)
    expect(told.of('job.started')).toHaveLength(0)
    gate.open()
    await world.advance(1)
    expect(told.of('job.started')).toHaveLength(1)
    await world.advance(30_000)
    expect(told.of('job.started')).toHaveLength(1)
  })

  test('starts at the next poll if its message was lost, at its first attempt', async () => {
    const { hf, world, told, line, enqueue } = fleet()
    hf.job({ name: 'job', run: () => undefined })
    await hf.work({ poll: '1s' })
    await world.advance(100)
    line.losesHints = true
    await enqueue()
    const tookMs = await world.until(() => told.of('job.completed').length === 1)
    expect(tookMs).toBeLessThanOrEqual(1_110)
    expect(told.of('job.started')[0]).toMatchObject({ attempt: 1 })
  })

  test('stays with its worker through the next polls', async () => {
    const { hf, world, told, clock, enqueue } = fleet()
    const runs: number[] = []
    hf.job({
      name: 'job',
      run: ({ job: { attempt } }) => {
        runs.push(attempt)
        return busy(clock, 5_000)
      },
    })
    await hf.work({ poll: '1s' })
    await world.advance(100)
    await enqueue()
    await world.until(() => told.of('job.completed').length === 1)
    expect(runs).toEqual([1])
  })

  test('is not run if its message comes after the next claim was sent', async () => {
    const { hf, world, told, freeze, thaw, enqueue } = fleet()
    const runs: number[] = []
    hf.job({ name: 'job', run: ({ job: { attempt } }) => void runs.push(attempt) })
    await hf.work({ poll: '1s' })
    await world.advance(100)
    freeze()
    await enqueue()
    await world.advance(5_000)
    // Timers fire first, so the worker polls before it reads the message.
    thaw()
    await world.until(() => told.of('job.completed').length === 1)
    await world.advance(60_000)
    expect(runs).toEqual([1])
    expect(await world.counts()).toEqual({ completed: 1 })
  })

  test('starts only once the store was asked about it, if its message was late', async () => {
    const { hf, world, told, freeze, thaw, line, enqueue } = fleet()
    hf.job({ name: 'job', run: () => undefined })
    await hf.work({ poll: '1h' })
    await world.advance(100)
    freeze()
    await enqueue()
    await world.advance(900)
    const beats = line.callsTo('heartbeat').length
    const gate = line.hold('heartbeat')
    thaw()
    await world.advance(1)
    expect(told.of('job.started')).toHaveLength(0)
    expect(line.callsTo('heartbeat').length).toBeGreaterThan(beats)
    gate.open()
    await world.advance(1)
    expect(told.of('job.started')).toHaveLength(1)
  })

  test('does not start once it was cancelled', async () => {
    const { hf, world, told, freeze, thaw } = fleet()
    hf.job({ name: 'job', run: () => undefined })
    await hf.work({ poll: '1h' })
    await world.advance(100)
    freeze()
    const handle = await world.process().hf.contract({ name: 'job' }).enqueue()
    const cancelled = handle.cancel('not needed')
    await world.advance(3_000)
    thaw()
    await world.run(cancelled)
    await world.advance(60_000)
    expect(told.of('job.started')).toHaveLength(0)
    expect(await world.counts()).toEqual({ cancelled: 1 })
  })

  test('is rescued like any other if its worker is lost', async () => {
    const { hf, world, kill, enqueue } = fleet()
    hf.job({ name: 'job', run: () => undefined })
    await hf.work({ poll: '1s' })
    await world.advance(100)
    kill()
    await enqueue()
    const other = world.process()
    other.hf.job({ name: 'job', run: () => undefined })
    await other.hf.work()
    await world.until(() => other.told.of('job.completed').length === 1)
  })
})

describe('an idle worker', () => {
  test('is handed no more jobs than it has slots', async () => {
    const { hf, world, told, clock, enqueue } = fleet()
    let most = 0
    let running = 0
    hf.job({
      name: 'job',
      run: async () => {
        most = Math.max(most, ++running)
        await busy(clock, 5_000)
        running--
      },
    })
    await hf.work({ concurrency: 2, poll: '1h' })
    await world.advance(100)
    await enqueue(5)
    await world.advance(10)
    expect(await world.counts()).toEqual({ running: 2, ready: 3 })
    await world.until(() => told.of('job.completed').length === 5)
    expect(most).toBe(2)
  })

  test('offers again once it was handed all that it offered to take', async () => {
    const { hf, world, told, line, enqueue } = fleet()
    hf.job({ name: 'job', run: () => undefined })
    await hf.work({ concurrency: 1, poll: '1h' })
    await world.advance(100)
    for (let round = 0; round < 3; round++) {
      const before = line.calls.filter(claims).length
      await enqueue()
      await world.advance()
      expect(told.of('job.started')).toHaveLength(round + 1)
      await world.advance(10)
      expect(line.calls.filter(claims)).toHaveLength(before + 1)
    }
  })

  test('withdraws its offer when it stops, and leaves nothing behind', async () => {
    const { hf, world, enqueue, line } = fleet()
    hf.job({ name: 'job', run: () => undefined })
    const worker = await hf.work({ poll: '1s' })
    await world.advance(100)
    line.losesHints = true
    await enqueue()
    await world.run(worker.stop())
    expect(await world.counts()).toEqual({ ready: 1 })
    await enqueue()
    expect(await world.counts()).toEqual({ ready: 2 })
    const jobs = await world.store.admin.list({ limit: 10, after: null })
    expect(jobs.jobs.map(({ attempt, crashes }) => [attempt, crashes])).toEqual([
      [0, 0],
      [0, 0],
    ])
  })

  test('stops although its withdrawal fails', async () => {
    const { hf, world, line } = fleet()
    hf.job({ name: 'job', run: () => undefined })
    const worker = await hf.work()
    await world.advance(100)
    line.fail('cycle', refused)
    await world.run(worker.stop())
  })

  test('that is stopped gives back what still arrives', async () => {
    const { hf, world, line, enqueue, told } = fleet()
    hf.job({ name: 'job', run: () => undefined })
    const worker = await hf.work({ poll: '1h' })
    await world.advance(100)
    const gate = line.hold('cycle', 'request')
    const stopped = worker.stop()
    await world.advance(1)
    await enqueue()
    await world.advance(1)
    gate.open()
    await world.run(stopped)
    expect(told.of('job.started')).toHaveLength(0)
    expect(await world.counts()).toEqual({ ready: 1 })
  })

  test('is handed nothing of a queue that was paused', async () => {
    const { hf, world, enqueue, told } = fleet()
    hf.job({ name: 'job', run: () => undefined })
    await hf.work({ poll: '1h' })
    await world.advance(100)
    await world.store.admin.setPaused('default', true)
    await enqueue()
    await world.advance(10_000)
    expect(told.of('job.started')).toHaveLength(0)
    expect(await world.counts()).toEqual({ ready: 1 })
  })

  test('does not believe in an offer whose answer was lost', async () => {
    const { hf, world, line, enqueue, told } = fleet()
    const runs: number[] = []
    hf.job({ name: 'job', run: ({ job: { attempt } }) => void runs.push(attempt) })
    await hf.work({ poll: '1s' })
    await world.advance(100)
    line.fail(claims, replyLost, 1)
    await world.advance(1_200)
    await enqueue()
    await world.until(() => told.of('job.completed').length === 1)
    await world.advance(60_000)
    expect(runs).toEqual([1])
    expect(await world.counts()).toEqual({ completed: 1 })
  })
})
