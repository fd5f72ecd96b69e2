import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { CycleAnswer, CycleRequest, SettleRequest } from '../stores/store.ts'
import {
  alone,
  busy,
  refused,
  replyBroken,
  replyLost,
  requestLost,
  type Call,
  type Fault,
  type Line,
} from '../../test/support/virtual.ts'

const settles = ({ method, args }: Call): boolean =>
  method === 'cycle' && (args[0] as CycleRequest).settle.length > 0

function settleRequests(line: Line): readonly SettleRequest[][] {
  return line.calls.filter(settles).map(({ args }) => [...(args[0] as CycleRequest).settle])
}

describe('the end of an attempt', () => {
  test.each([
    ['refused', refused],
    ['lost on its way', requestLost],
    ['written but its answer lost', replyLost],
    ['written but its answer broken off', replyBroken],
  ])('is sent again under the same token where it was %s, and written once', async (_, fault) => {
    const { hf, world, told, line } = alone()
    let runs = 0
    const job = hf.job({ name: 'job', run: () => `run ${++runs}` })
    const { id } = await job.enqueue()
    line.fail(settles, fault, 3)
    await hf.work()
    await world.until(() => told.of('job.completed').length === 1)
    const [first, ...again] = settleRequests(line).map((requests) => requests[0])
    expect(again).toHaveLength(3)
    for (const request of again) expect(request).toEqual(first)
    await world.advance(120_000)
    expect(runs).toBe(1)
    expect(await world.record(id)).toMatchObject({ state: 'completed', result: '"run 1"', attempt: 1 })
    expect(told.about(id)).toEqual(['job.enqueued', 'job.started', 'job.completed'])
  })

  test('that is a failure uses one attempt, however often it is sent', async () => {
    const { hf, world, told, line } = alone()
    const job = hf.job({
      name: 'job',
      run: () => {
        throw new Error('no')
      },
    })
    const { id } = await job.enqueue()
    line.fail(settles, replyBroken, 1)
    await hf.work()
    await world.until(() => told.of('job.failed').length === 1)
    expect(await world.record(id)).toMatchObject({ attempt: 1 })
    await world.until(() => told.of('job.failed').some((event) => event.final))
    expect(told.of('job.failed').map((event) => event.attempt)).toEqual([1, 2, 3, 4])
  })

  test('is told only once the store has written it', async () => {
    const { hf, world, told, line } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    await job.enqueue()
    await hf.work()
    line.fail(settles, refused)
    await world.advance(20_000)
    expect(told.of('job.completed')).toEqual([])
    line.mend()
    await world.until(() => told.of('job.completed').length === 1)
  })

  test('is written after an outage for every job that ended meanwhile', async () => {
    const { hf, world, told, line, clock } = alone()
    const job = hf.job({ name: 'job', input: z.number(), run: ({ input }) => busy(clock, 1_000 + input) })
    await job.enqueueMany(Array.from({ length: 40 }, (_, n) => n))
    await hf.work({ concurrency: 40 })
    await world.advance(500)
    line.breakDown(requestLost)
    await world.advance(20_000)
    line.mend()
    const tookMs = await world.until(() => told.of('job.completed').length === 40)
    expect(tookMs).toBeLessThanOrEqual(5_000)
    expect(told.of('job.completed').every((event) => event.durationMs < 1_100)).toBe(true)
    expect(await world.counts()).toEqual({ completed: 40 })
  })

  test('travels with others in one call', async () => {
    const { hf, world, told, line, clock } = alone()
    const job = hf.job({ name: 'job', input: z.number(), run: () => busy(clock, 100) })
    await job.enqueueMany(Array.from({ length: 20 }, (_, n) => n))
    await hf.work({ concurrency: 20 })
    await world.until(() => told.of('job.completed').length === 20)
    expect(settleRequests(line).map((requests) => requests.length)).toEqual([20])
  })

  test('does not wait for a long backlog of jobs that return at once', async () => {
    const { hf, world, told, line } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    await job.enqueueMany(Array.from({ length: 500 }))
    await hf.work({ concurrency: 500 })
    await world.until(() => told.of('job.completed').length === 500)
    const [first = [], ...others] = settleRequests(line)
    expect(first).toHaveLength(128)
    expect(others.flat()).toHaveLength(500 - 128)
  })

  test('waits for a call under way that settles the same lease, which ends of other leases do not', async () => {
    const { hf, world, told, line, clock } = alone({ queues: { a: {}, b: {} } })
    const input = z.number()
    const run = (options: { readonly input: number }): Promise<unknown> => busy(clock, options.input)
    const a = hf.job({ name: 'a', queue: 'a', input, run })
    const b = hf.job({ name: 'b', queue: 'b', input, run })
    // Each queue is a lease. Three hundred ends are worth a second call beside the first.
    await a.enqueueMany([...Array<number>(300).fill(500), ...Array<number>(5).fill(600)])
    await b.enqueueMany(Array<number>(300).fill(600))
    const first = line.hold(settles)
    await hf.work({ concurrency: 1_000, queues: { a: 1, b: 1 } })
    await world.until(() => first.held() === 1)
    await world.until(() => told.of('job.completed').length === 300)
    expect(told.of('job.completed').every(({ job }) => job === 'b')).toBe(true)
    await world.advance(500)
    expect(settleRequests(line).map((requests) => requests.length)).toEqual([300, 300])
    first.open()
    await world.until(() => told.of('job.completed').length === 605)
    const tokens = settleRequests(line).map((requests) => [...new Set(requests.map(({ token }) => token))])
    expect(settleRequests(line).map((requests) => requests.length)).toEqual([300, 300, 5])
    expect(tokens).toEqual([[tokens[0]![0]], [tokens[1]![0]], [tokens[0]![0]]])
    expect(tokens[0]).not.toEqual(tokens[1])
  })

  test('that was held back goes on after a call that failed, together with what that carried', async () => {
    const { hf, world, told, line, clock } = alone()
    const job = hf.job({ name: 'job', input: z.number(), run: ({ input }) => busy(clock, input) })
    await job.enqueueMany([...Array<number>(3).fill(100), ...Array<number>(100).fill(200)])
    line.fail(settles, requestLost, 1)
    await hf.work({ concurrency: 200 })
    await world.until(() => told.of('job.completed').length === 103)
    expect(settleRequests(line).map((requests) => requests.length)).toEqual([3, 103])
    expect(await world.counts()).toEqual({ completed: 103 })
  })
})

describe('a store that answers fewer settles than it was sent', () => {
  const forgetful: Fault = async (perform) => ({ ...((await perform()) as CycleAnswer), settled: [] })
  const broken = { code: 'HF_STORE_CONTRACT', message: 'The store answered 0 of 1 settles.' }

  test('has broken its contract: the job is not taken for lost, and its settle is sent again', async () => {
    const { hf, world, told, line } = alone()
    const job = hf.job({ name: 'job', run: () => 'done' })
    const { id } = await job.enqueue()
    line.fail(settles, forgetful, 2)
    await hf.work()
    await world.until(() => told.of('job.completed').length === 1)
    expect(told.of('worker.error')).toMatchObject([{ error: broken }, { error: broken }])
    expect(told.about(id)).toEqual(['job.enqueued', 'job.started', 'job.completed'])
    expect(await world.record(id)).toMatchObject({ state: 'completed', attempt: 1 })
  })

  test('leaves a message with its caller, who can ack it again', async () => {
    const { hf, line } = alone()
    const queue = hf.queue('default')
    const handle = await queue.send('hello')
    const [message] = await queue.get()
    line.fail(settles, forgetful, 1)
    await expect(message!.ack()).rejects.toMatchObject(broken)
    await message!.ack()
    expect(await handle.state()).toBe('completed')
  })
})
