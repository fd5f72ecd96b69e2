import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  alone,
  busy,
  letPromisesRun,
  refused,
  replyLost,
  requestLost,
  thrownBy,
} from '../../test/support/virtual.ts'

const run = (): void => undefined
const locked = (): Promise<never> => Promise.reject(new Error('database is locked by process 123'))
const unreachable = { code: 'HF_STORE_UNREACHABLE' }

describe('an enqueue while the store is away', () => {
  test.each([
    ['hangs', requestLost],
    ['refuses', refused],
    ['loses its answers', replyLost],
  ])('fails at its deadline where the store %s', async (_, fault) => {
    const { hf, line, world } = alone({ timeout: '3s' })
    const job = hf.job({ name: 'mail', run })
    line.fail('enqueue', fault)
    const error = await world.run(thrownBy(job.enqueue()))
    expect(error).toMatchObject({
      ...unreachable,
      message: expect.stringMatching(/could not enqueue job "mail"/),
    })
    expect(world.nowMs).toBeGreaterThan(1_000)
    expect(world.nowMs).toBeLessThanOrEqual(3_000)
  })

  test('fails at its own deadline, however many came before it', async () => {
    const { hf, line, world } = alone({ timeout: '3s' })
    const job = hf.job({ name: 'mail', run })
    line.fail('enqueue', requestLost)
    const late: number[] = []
    const enqueue = async (): Promise<void> => {
      const begunMs = world.nowMs
      expect(await thrownBy(job.enqueue())).toMatchObject(unreachable)
      late.push(world.nowMs - begunMs - 3_000)
    }
    const all: Promise<void>[] = []
    for (let turn = 0; turn < 5; turn++) {
      for (let count = 0; count < 700; count++) all.push(enqueue())
      await world.advance(500)
    }
    await world.run(Promise.all(all))
    expect(Math.max(...late)).toBeLessThanOrEqual(1)
  })

  test('names the store and what it said', async () => {
    const { hf, line, world } = alone()
    line.fail('enqueue', refused)
    const error = await world.run(thrownBy(hf.job({ name: 'mail', run }).enqueue()))
    expect(error).toMatchObject({
      message: expect.stringMatching(/memory store failed.*connection refused/),
      cause: expect.objectContaining({ message: 'connection refused' }),
    })
  })

  test('says so to those who waited behind others, too', async () => {
    const { hf, line, world } = alone({ timeout: '3s' })
    const job = hf.job({ name: 'mail', run })
    line.fail('enqueue', refused, 6)
    line.fail('enqueue', requestLost)
    const before = Array.from({ length: 20 }, () => thrownBy(job.enqueue()))
    await world.advance(20)
    const error = await world.run(thrownBy(job.enqueue()))
    await world.run(Promise.all(before))
    expect(error).toMatchObject({ ...unreachable, message: expect.stringMatching(/connection refused/) })
  })

  test('does not repeat what the store answered long ago', async () => {
    const { hf, line, world } = alone({ timeout: '3s' })
    const job = hf.job({ name: 'mail', run })
    line.fail('enqueue', refused, 1)
    await world.run(job.enqueue())
    await world.advance(10_000)
    line.fail('enqueue', requestLost)
    const error = await world.run(thrownBy(job.enqueue()))
    expect((error as Error).message).not.toMatch(/connection refused/)
  })

  test('tells at its deadline what the store said last, though the newest try hangs', async () => {
    const { hf, line, world } = alone({ timeout: '6s' })
    line.fail('enqueue', locked, 3)
    line.fail('enqueue', requestLost)
    const error = await world.run(thrownBy(hf.job({ name: 'mail', run }).enqueue()))
    expect(error).toMatchObject({
      ...unreachable,
      message:
        'The memory store did not answer within 6s: could not enqueue job "mail". Its last error: database is locked by process 123',
      cause: expect.objectContaining({ message: 'database is locked by process 123' }),
    })
    expect(world.nowMs).toBe(6_000)
  })

  test('tells those who were never sent what the store said to those before them', async () => {
    const { hf, line, world } = alone({ timeout: '6s' })
    const job = hf.job({ name: 'mail', run })
    line.fail('enqueue', locked)
    const first = [thrownBy(job.enqueue())]
    await letPromisesRun()
    first.push(thrownBy(job.enqueue()))
    await world.advance(3_000)
    const begunMs = world.nowMs
    // It waits behind the two that are under way, is sent when they end, and has its own deadline.
    const error = await world.run(thrownBy(job.enqueue()))
    expect(error).toMatchObject({
      ...unreachable,
      message: expect.stringMatching(/could not enqueue job "mail"\..*database is locked by process 123/),
    })
    expect(world.nowMs - begunMs).toBeLessThanOrEqual(6_000)
    await Promise.all(first)
  })

  test('tells the store how long each try is waited for', async () => {
    const { hf, line, world } = alone({ timeout: '10s' })
    line.fail('enqueue', requestLost)
    await world.run(thrownBy(hf.job({ name: 'mail', run }).enqueue()))
    const [first, second, ...more] = line.callsTo('enqueue')
    expect(first!.args[1]).toBe(3_000)
    expect(second!.args[1]).toBe(6_000)
    for (const { atMs, args } of more) expect(atMs + (args[1] as number)).toBe(10_000)
  })

  test('succeeds where the store comes back in time', async () => {
    const { hf, line, world } = alone()
    line.breakDown()
    const enqueued = hf.job({ name: 'mail', run }).enqueue()
    await world.advance(8_000)
    line.mend()
    const handle = await world.run(enqueued)
    expect(world.nowMs).toBeLessThanOrEqual(10_000)
    expect(await handle.state()).toBe('ready')
  })

  test('succeeds soon where only its first request was lost', async () => {
    const { hf, line, world } = alone()
    line.fail('enqueue', requestLost, 1)
    await world.run(hf.job({ name: 'mail', run }).enqueue())
    expect(world.nowMs).toBeLessThanOrEqual(3_100)
    expect(await world.counts()).toEqual({ ready: 1 })
  })

  test('succeeds where the store is alive but slow', async () => {
    const { hf, line, world, clock } = alone()
    line.fail('enqueue', async (perform) => {
      await busy(clock, 5_000)
      return perform()
    })
    await world.run(hf.job({ name: 'mail', run }).enqueue())
    expect(world.nowMs).toBeLessThanOrEqual(10_000)
    expect(await world.counts()).toEqual({ ready: 1 })
    await world.advance(10_000)
  })

  test('succeeds where the store could not be opened at first', async () => {
    const { hf, line, world } = alone()
    line.fail('open', refused, 3)
    const handle = await world.run(hf.job({ name: 'mail', run }).enqueue())
    expect(await handle.state()).toBe('ready')
    expect(line.callsTo('open')).toHaveLength(4)
  })

  test('fails at its deadline where the store cannot be opened', async () => {
    const { hf, line, world } = alone()
    line.fail('open', refused)
    const error = await world.run(thrownBy(hf.job({ name: 'mail', run }).enqueue()))
    expect(error).toMatchObject(unreachable)
    expect(line.callsTo('enqueue')).toHaveLength(0)
  })

  test('opens the store anew after an opening that never ended', async () => {
    const { hf, line, world } = alone({ timeout: '2s' })
    const job = hf.job({ name: 'mail', run })
    line.fail('open', requestLost, 1)
    await expect(world.run(job.enqueue())).rejects.toMatchObject(unreachable)
    const handle = await world.run(job.enqueue())
    expect(await handle.state()).toBe('ready')
  })

  test('opens the store once, however many ask at the same time', async () => {
    const { hf, line } = alone()
    const job = hf.job({ name: 'mail', input: z.number(), run })
    await Promise.all([job.enqueue(1), job.get('x'), hf.queues(), hf.pause('default')])
    expect(line.callsTo('open')).toHaveLength(1)
  })
})

describe('a store with a bug', () => {
  const bug = (): Promise<never> => Promise.reject(new TypeError('rows is not iterable'))
  const contract = { code: 'HF_STORE_CONTRACT', cause: expect.any(TypeError) }

  test('fails an enqueue at once, under a code of its own', async () => {
    const { hf, line, world, told } = alone()
    line.fail('enqueue', bug)
    const error = await world.run(thrownBy(hf.job({ name: 'mail', run }).enqueue()))
    expect(error).toMatchObject({
      ...contract,
      message: 'The memory store failed: could not enqueue job "mail". TypeError: rows is not iterable',
    })
    expect(world.nowMs).toBe(0)
    expect(line.callsTo('enqueue')).toHaveLength(1)
    expect(told.of('store.down')).toEqual([])
  })

  test('cannot be opened: that is no outage either', async () => {
    const { hf, line, world, told } = alone()
    const notInstalled = Object.assign(new Error("Cannot find package 'pg'"), {
      code: 'ERR_MODULE_NOT_FOUND',
    })
    line.fail('open', () => Promise.reject(notInstalled))
    const error = await world.run(thrownBy(hf.job({ name: 'mail', run }).enqueue()))
    expect(error).toMatchObject({ code: 'HF_STORE_CONTRACT', cause: notInstalled })
    expect(line.callsTo('open')).toHaveLength(1)
    expect(told.of('store.down')).toEqual([])
  })

  test('is told by workers and by those who would lead', async () => {
    const { hf, line, world, told } = alone()
    hf.job({ name: 'mail', run })
    line.fail(['cycle', 'upkeep.lead'], bug)
    const worker = await hf.work()
    await world.until(() => told.of('worker.error').length > 0 && told.of('duty.failed').length > 0)
    expect(told.of('worker.error')[0]).toMatchObject({
      worker: worker.id,
      doing: 'settle and claim',
      error: contract,
    })
    expect(told.of('duty.failed')[0]).toMatchObject({ duty: 'elect a leader', error: contract })
    expect(told.of('store.down')).toEqual([])
  })

  test('is an outage where the call failed on its connection', async () => {
    const { hf, line, world, told } = alone()
    const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    line.fail('enqueue', () => Promise.reject(new TypeError('fetch failed', { cause })), 1)
    await world.run(hf.job({ name: 'mail', run }).enqueue())
    expect(told.of('store.down')).toHaveLength(1)
  })
})

describe('a closed holdfast()', () => {
  test('refuses everything with HF_CLOSED', async () => {
    const { hf, world } = alone()
    const job = hf.job({ name: 'mail', run })
    const handle = await job.enqueue()
    await world.run(hf.close())
    const closed = { code: 'HF_CLOSED' }
    await expect(job.enqueue()).rejects.toMatchObject(closed)
    await expect(hf.enqueueMany([job.with()])).rejects.toMatchObject(closed)
    await expect(handle.state()).rejects.toMatchObject(closed)
    await expect(handle.cancel()).rejects.toMatchObject(closed)
    await expect(job.get(handle.id)).rejects.toMatchObject(closed)
    await expect(hf.queues()).rejects.toMatchObject(closed)
    await expect(hf.pause('default')).rejects.toMatchObject(closed)
    await expect(hf.work()).rejects.toMatchObject(closed)
    await expect(hf.queue('default').get()).rejects.toMatchObject(closed)
  })

  test('was closed once, however often it is asked', async () => {
    const { hf, world, line } = alone()
    await hf.job({ name: 'mail', run }).enqueue()
    const first = hf.close()
    expect(hf.close()).toBe(first)
    await world.run(first)
    await hf.close()
    await hf[Symbol.asyncDispose]()
    expect(line.callsTo('close')).toHaveLength(1)
  })

  test('never opened a store that was never used', async () => {
    const { hf, line, world } = alone()
    hf.job({ name: 'mail', run })
    await world.run(hf.close())
    expect(line.calls).toEqual([])
  })

  test('waited for the enqueues that were on their way', async () => {
    const { hf, line, world } = alone()
    const job = hf.job({ name: 'mail', run })
    const gate = line.hold('enqueue', 'reply')
    const enqueued = job.enqueue()
    await letPromisesRun()
    let closed = false
    const closing = hf.close().then(() => void (closed = true))
    await world.advance(1_000)
    expect(closed).toBe(false)
    gate.open()
    await world.run(closing)
    expect(await enqueued).toMatchObject({ duplicate: false })
    expect(line.calls.at(-1)?.method).toBe('close')
    expect(await world.counts()).toEqual({ ready: 1 })
  })

  test('gives up at once what waited for another try', async () => {
    const { hf, line, world } = alone()
    line.breakDown()
    const enqueued = thrownBy(hf.job({ name: 'mail', run }).enqueue())
    await world.advance(3_000)
    await world.run(hf.close().catch(() => undefined))
    expect(await enqueued).toMatchObject({ code: 'HF_CLOSED' })
    expect(world.clock.nextDueMs()).toBeUndefined()
  })

  test('ends those who wait for a result, and leaves no timer behind', async () => {
    const { hf, world } = alone()
    const handle = await hf.job({ name: 'mail', run }).enqueue(undefined, { in: '1h' })
    const result = thrownBy(handle.result({ timeout: '1d' }))
    const watched = thrownBy(
      (async () => {
        for await (const _ of handle.watch()) continue
      })(),
    )
    await world.advance(30_000)
    await hf.close()
    expect(world.clock.nextDueMs()).toBeUndefined()
    expect(await result).toMatchObject({ code: 'HF_CLOSED' })
    expect(await watched).toMatchObject({ code: 'HF_CLOSED' })
  })

  test('ends within its deadline where the store never answers again', async () => {
    const { hf, line, world } = alone({ timeout: '3s' })
    const job = hf.job({ name: 'mail', run })
    await job.enqueue()
    line.breakDown(requestLost)
    const enqueued = thrownBy(job.enqueue())
    await world.advance(1_000)
    await expect(world.run(hf.close())).rejects.toMatchObject(unreachable)
    expect(world.nowMs).toBeLessThanOrEqual(6_000)
    await enqueued
  })

  test('gives the store back also where opening it never ended', async () => {
    const { hf, line, world } = alone({ timeout: '2s' })
    line.fail('open', requestLost)
    const enqueued = thrownBy(hf.job({ name: 'mail', run }).enqueue())
    await world.advance(500)
    await world.run(hf.close())
    await enqueued
    expect(line.callsTo('close')).toHaveLength(1)
  })
})
