/** Settles that the store refuses because of what is in them. */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { alone, deferred, type Call, type Fault } from '../../test/support/virtual.ts'
import { HoldfastError } from '../errors.ts'
import type { Token } from '../job/ids.ts'
import type { CycleRequest, SettleRequest } from '../stores/store.ts'

const refusal = new HoldfastError(
  'HF_STORE_REFUSED',
  'The database refused a value: invalid byte “😀” (SQLSTATE 22021).',
)
const refuses: Fault = () => Promise.reject(refusal)

function settlesOf({ method, args }: Call): readonly SettleRequest[] {
  return method === 'cycle' ? (args[0] as CycleRequest).settle : []
}

const hasReports = ({ reports = [] }: CycleRequest): boolean => reports.length > 0

/** Calls in which one of these numbers is a job's result. */
function withResult(...results: readonly number[]): (call: Call) => boolean {
  return (call) =>
    settlesOf(call).some(
      ({ settlement }) => settlement.type === 'completed' && results.includes(Number(settlement.result)),
    )
}

describe('a settle that the store refuses because of its data', () => {
  test('makes its job a dead letter that says why; all others of the call are completed', async () => {
    const { hf, world, line, told } = alone()
    const job = hf.job({ name: 'job', input: z.number(), run: ({ input }) => input })
    const handles = await Promise.all(Array.from({ length: 40 }, (_, n) => job.enqueue(n)))
    line.fail(withResult(7, 31), refuses)
    await hf.work({ concurrency: 40 })
    await world.until(() => told.of('job.completed').length + told.of('job.failed').length === 40)
    expect(await world.counts()).toEqual({ completed: 38, dead: 2 })
    expect(told.of('job.failed').map(({ id }) => id)).toEqual([handles[7]!.id, handles[31]!.id])
    expect(told.of('job.failed')[0]).toMatchObject({ final: true, kind: 'permanent' })
    const dead = await world.store.admin.get(handles[7]!.id as never)
    expect(dead).toMatchObject({
      state: 'dead',
      error: {
        code: 'HF_STORE_REFUSED',
        kind: 'permanent',
        message: expect.stringMatching(/^The store cannot keep the result of this job\. .*SQLSTATE 22021/),
      },
      attempts: [{ outcome: 'failed', error: { code: 'HF_STORE_REFUSED' } }],
    })
    expect((dead as { error: { message: string } }).error.message).toMatch(/^[\x20-\x7e]+$/)
    expect(told.of('store.down')).toEqual([])
    expect(told.of('job.lost')).toEqual([])
  })

  test('does not stop the worker: what comes later is claimed and settled', async () => {
    const { hf, world, line, told } = alone()
    const job = hf.job({ name: 'job', input: z.number(), run: ({ input }) => input })
    line.fail(withResult(1), refuses)
    await hf.work()
    await job.enqueue(1)
    await world.until(() => told.of('job.failed').length === 1)
    await job.enqueue(2)
    await world.until(() => told.of('job.completed').length === 1)
    expect(await world.counts()).toEqual({ completed: 1, dead: 1 })
  })

  test('is written once, and so are its neighbours, if the store goes away in the middle', async () => {
    const { hf, world, line, told } = alone()
    const job = hf.job({ name: 'job', input: z.number(), run: ({ input }) => input })
    await job.enqueueMany(Array.from({ length: 16 }, (_, n) => n))
    line.fail(withResult(12), refuses)
    // The first half gets through, then every call fails for a while.
    let seen = 0
    const end = line.fail(
      (call) => settlesOf(call).length > 0 && !withResult(12)(call) && ++seen > 1,
      () => Promise.reject(new Error('connection reset')),
    )
    await hf.work({ concurrency: 16 })
    await world.until(() => told.of('store.down').length === 1)
    end()
    await world.until(() => told.of('job.completed').length + told.of('job.failed').length === 16)
    await world.advance(60_000)
    expect(await world.counts()).toEqual({ completed: 15, dead: 1 })
    expect(told.of('job.lost')).toEqual([])
    expect(told.of('job.released')).toEqual([])
  })

  test('is tried again later if even the dead letter is refused, without holding up the others', async () => {
    const { hf, world, line, told } = alone()
    const job = hf.job({ name: 'job', input: z.number(), run: ({ input }) => input })
    const bad = await job.enqueue(0)
    await job.enqueueMany([1, 2, 3])
    const position = (call: Call): boolean => settlesOf(call).some((one) => one.position === 0)
    const end = line.fail(position, refuses)
    await hf.work()
    await world.until(() => told.of('job.completed').length === 3)
    expect(await world.counts()).toEqual({ completed: 3, running: 1 })
    end()
    await world.until(() => told.of('job.failed').length === 1)
    expect((await world.store.admin.get(bad.id as never))?.state).toBe('dead')
  })

  test('waits for a time of its own if even the dead letter is refused: others are claimed and settled', async () => {
    const { hf, world, line, told } = alone()
    const job = hf.job({ name: 'job', input: z.number(), run: ({ input }) => input })
    const bad = await job.enqueue(0)
    let token: Token | undefined
    const isStuck = (call: Call): boolean => {
      token ??= settlesOf(call)[0]?.token
      return settlesOf(call).some((one) => one.token === token)
    }
    const end = line.fail(isStuck, refuses)
    await hf.work()
    await world.until(() => token !== undefined)
    for (let n = 1; n <= 60; n++) {
      await job.enqueue(n)
      await world.until(() => told.of('job.completed').length === n, 500)
      await world.advance(500)
    }
    // In thirty seconds: refused as it is and as a dead letter, and three times again.
    const refused = line.callsTo('cycle').filter(isStuck)
    expect(refused.length).toBeLessThan(12)
    expect(told.of('worker.error').length).toBeLessThan(6)
    expect(told.of('worker.error')[0]).toMatchObject({ doing: 'settle and claim', error: refusal })
    expect(told.of('store.down')).toEqual([])
    end()
    await world.until(() => told.of('job.failed').length === 1, 10_100)
    expect(await world.record(bad.id)).toMatchObject({ state: 'dead', error: { code: 'HF_STORE_REFUSED' } })
  })

  test('costs no progress and no log lines that travel in the same call', async () => {
    const { hf, world, line, told } = alone()
    const gate = deferred()
    const job = hf.job({
      name: 'job',
      input: z.number(),
      async run({ input, progress, log }) {
        progress(input, 10)
        log.info('half done')
        if (input === 1) await gate.promise
        return input
      },
    })
    line.fail(withResult(7), refuses)
    const [runs, ends] = [await job.enqueue(1), await job.enqueue(7)]
    await hf.work()
    await world.until(() => told.of('job.failed').length === 1)
    for (const [{ id }, done] of [[runs, 1] as const, [ends, 7] as const])
      expect(await world.record(id)).toMatchObject({
        progress: { done, total: 10 },
        log: [{ message: 'half done' }],
      })
    expect(told.of('worker.error')).toEqual([])
    gate.resolve()
  })

  test('goes through if the store refuses the reports of the same call, which are told and dropped', async () => {
    const { hf, world, line, told } = alone()
    const job = hf.job({
      name: 'job',
      run({ progress }) {
        progress(1, 2)
        return 'done'
      },
    })
    line.fail(({ method, args }) => method === 'cycle' && hasReports(args[0] as CycleRequest), refuses)
    const handle = await job.enqueue()
    await hf.work()
    expect(await world.run(handle.result())).toBe('done')
    expect(told.of('worker.error')).toMatchObject([{ doing: 'send reports', error: refusal }])
  })
})

describe('a message whose settle the store refuses because of its data', () => {
  test('is still held if its caller acked it, who can settle it in another way', async () => {
    const { hf, world, line, told } = alone()
    const queue = hf.queue('default')
    const handle = await queue.send('hello')
    const [message] = await queue.get()
    line.fail(withResult(7), refuses)
    await expect(message!.ack(7)).rejects.toBe(refusal)
    expect(await handle.state()).toBe('running')
    await message!.ack(8)
    expect(await world.run(handle.result())).toBe(8)
    expect(told.of('job.completed')).toHaveLength(1)
  })

  test('becomes a dead letter that says why if nobody waits for it', async () => {
    const { hf, world, line, told } = alone()
    const queue = hf.queue('default')
    const handle = await queue.send('hello', { timeout: '1m' })
    await queue.get()
    line.fail((call) => settlesOf(call).some(({ settlement: { type } }) => type === 'retry'), refuses)
    await world.advance(61_000)
    expect(await world.record(handle.id)).toMatchObject({
      state: 'dead',
      error: { code: 'HF_STORE_REFUSED' },
    })
    expect(told.of('job.failed')).toMatchObject([{ id: handle.id, final: true, kind: 'permanent' }])
    const calls = line.callsTo('cycle').length
    await world.advance(60_000)
    expect(line.callsTo('cycle').length).toBe(calls)
  })
})

describe('a store that denies access for a while', () => {
  const denied = new HoldfastError('HF_STORE_DENIED', 'The database denied access (SQLSTATE 42501).')

  test('is told of once a minute, is no outage, and costs no job', async () => {
    const { hf, world, line, told } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    await hf.work()
    await world.advance(1_000)
    line.breakDown(() => Promise.reject(denied))
    await expect(world.run(job.enqueue())).rejects.toBe(denied)
    await world.advance(110_000)
    expect(told.of('store.unusable')).toHaveLength(2)
    expect(told.of('store.unusable')[0]).toMatchObject({ error: denied })
    expect(told.of('store.down')).toEqual([])
    const calls = line.callsTo('cycle').length
    await world.advance(60_000)
    expect(line.callsTo('cycle').length - calls).toBeLessThanOrEqual(15)
    line.mend()
    await job.enqueue()
    await world.until(() => told.of('job.completed').length === 1, 60_000)
  })

  test('a full store is tried again soon, and loses nothing', async () => {
    const full = new HoldfastError('HF_STORE_FULL', 'The disk of the database is full (SQLSTATE 53100).')
    const { hf, world, line, told } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    await job.enqueueMany(Array.from({ length: 5 }, () => undefined))
    line.fail(
      (call) => settlesOf(call).length > 0,
      () => Promise.reject(full),
    )
    await hf.work()
    await world.advance(20_000)
    expect(told.of('store.unusable')).toHaveLength(1)
    line.mend()
    await world.until(() => told.of('job.completed').length === 5, 5_000)
    expect(told.of('store.down')).toEqual([])
  })
})
