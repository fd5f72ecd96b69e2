import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Fatal } from '../errors.ts'
import { alone, busy, letPromisesRun, thrownBy } from '../../test/support/virtual.ts'
import type { GetOptions } from './message-queue.ts'

describe('a queue by hand', () => {
  test('gives out what was sent, and forgets it once it is acked', async () => {
    const { hf, world, told } = alone()
    const queue = hf.queue('default')
    const handle = await queue.send({ to: 'ada' })
    expect(await queue.size()).toBe(1)
    const [message, ...more] = await queue.get()
    expect(more).toEqual([])
    expect(message).toMatchObject({ id: handle.id, name: 'message', payload: { to: 'ada' }, fence: 1n })
    expect(message?.job).toMatchObject({
      attempt: 1,
      maxAttempts: 4,
      queue: 'default',
      correlationId: handle.id,
    })
    expect(await queue.size()).toBe(0)
    expect(await handle.state()).toBe('running')
    await message?.ack({ sent: true })
    expect(await handle.state()).toBe('completed')
    expect(await handle.result()).toEqual({ sent: true })
    expect(told.about(handle.id)).toEqual(['job.enqueued', 'job.started', 'job.completed'])
    expect(world.nowMs).toBe(0)
  })

  test('gives out as many as asked for, best first', async () => {
    const { hf } = alone()
    const queue = hf.queue('default')
    await queue.send('low', { priority: 'low' })
    await queue.send('first')
    await queue.send('second')
    await queue.send('urgent', { priority: 'urgent' })
    expect((await queue.get({ limit: 3 })).map((message) => message.payload)).toEqual([
      'urgent',
      'first',
      'second',
    ])
    expect((await queue.get({ limit: 10 })).map((message) => message.payload)).toEqual(['low'])
    expect(await queue.get({ limit: 10 })).toEqual([])
  })

  test('gives each message to one caller only, in whatever process', async () => {
    const { hf, world } = alone()
    const other = world.process().hf.queue('default')
    const queue = hf.queue('default')
    for (let n = 0; n < 10; n++) await queue.send(n)
    const taken = await Promise.all([
      queue.get({ limit: 4 }),
      other.get({ limit: 4 }),
      queue.get({ limit: 4 }),
      other.get({ limit: 4 }),
    ])
    const payloads = taken.flat().map((message) => message.payload as number)
    expect(payloads.sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  })

  test('is the same object for the same name, and is known by its name', () => {
    const { hf } = alone({ queues: { mail: {}, reports: {} } })
    expect(hf.queue('mail')).toBe(hf.queue('mail'))
    expect(hf.queue('mail').name).toBe('mail')
    expect(hf.queue('mail')).not.toBe(hf.queue('reports'))
    expect(() => hf.queue('mial' as 'mail')).toThrow(expect.objectContaining({ code: 'HF_UNKNOWN_QUEUE' }))
  })

  test.each([
    ['a limit of zero', { limit: 0 }],
    ['a limit beyond what a store takes', { limit: 1_001 }],
    ['a wait that is no duration', { wait: 'long' as '1s' }],
    ['an unknown option', { waitMs: 5 }],
  ] as const)('refuses %s', async (_, options) => {
    const { hf, line } = alone()
    await expect(hf.queue('default').get(options as GetOptions)).rejects.toMatchObject({
      code: 'HF_BAD_OPTION',
    })
    expect(line.calls).toEqual([])
  })

  test('refuses to send what JSON cannot hold, and names that are none', async () => {
    const { hf, line } = alone()
    await expect(hf.queue('default').send({ n: 1n })).rejects.toMatchObject({ code: 'HF_NOT_JSON' })
    await expect(hf.queue('default').send(1, { name: 'two words' })).rejects.toMatchObject({
      code: 'HF_BAD_JOB',
    })
    expect(line.calls).toEqual([])
  })
})

describe('a get() that waits', () => {
  test('is answered at once by what is sent meanwhile', async () => {
    const { hf, world } = alone()
    const queue = hf.queue('default')
    const waiting = queue.get({ wait: '1m' })
    await world.advance(12_345)
    await queue.send('now')
    await letPromisesRun()
    expect((await waiting).map((message) => message.payload)).toEqual(['now'])
    expect(world.nowMs).toBe(12_345)
  })

  test('is answered by a poll where the wake-up was lost', async () => {
    const { hf, world, line } = alone()
    line.losesHints = true
    const queue = hf.queue('default')
    const waiting = queue.get({ wait: '1m' })
    await world.advance(10_500)
    await queue.send('now')
    expect(await world.run(waiting)).toHaveLength(1)
    expect(world.nowMs).toBeLessThanOrEqual(11_500)
  })

  test('is answered with nothing when its time is over, not before and not after', async () => {
    const { hf, world } = alone()
    expect(await world.run(hf.queue('default').get({ wait: '7s' }))).toEqual([])
    expect(world.nowMs).toBe(7_000)
  })

  test('wakes every one of several that wait', async () => {
    const { hf, world } = alone()
    const queue = hf.queue('default')
    const waiting = Array.from({ length: 5 }, () => queue.get({ wait: '1h' }))
    await world.advance(100)
    for (let n = 0; n < 5; n++) await queue.send(n)
    await letPromisesRun()
    await letPromisesRun()
    const got = (await world.run(Promise.all(waiting))).flat()
    expect(got).toHaveLength(5)
    expect(world.nowMs).toBe(100)
  })

  test('ends at once with the reason of its own signal, and no other', async () => {
    const { hf, world } = alone()
    const queue = hf.queue('default')
    const abort = new AbortController()
    const aborted = thrownBy(queue.get({ wait: '1h', signal: abort.signal }))
    const other = queue.get({ wait: '1h' })
    await world.advance(100)
    abort.abort(new Error('enough'))
    await letPromisesRun()
    expect(await aborted).toMatchObject({ message: 'enough' })
    expect(world.nowMs).toBe(100)
    await queue.send('for the other')
    expect(await world.run(other)).toHaveLength(1)
    await expect(queue.get({ signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' })
  })
})

describe('a message that is nacked', () => {
  test('comes back after its backoff, as the next attempt', async () => {
    const { hf, world, told } = alone()
    const queue = hf.queue('default')
    const { id } = await queue.send('again')
    const [first] = await queue.get()
    await first?.nack(new Error('smtp is away'))
    expect(told.of('job.failed')).toMatchObject([{ id, final: false, kind: 'transient', attempt: 1 }])
    const [second] = await world.run(queue.get({ wait: '1m' }))
    expect(second).toMatchObject({ id, payload: 'again', job: { attempt: 2 } })
    expect(second!.fence).toBeGreaterThan(first!.fence)
    expect(world.nowMs).toBeLessThanOrEqual(1_000)
    expect((await world.record(id)).error).toMatchObject({ message: 'smtp is away' })
  })

  test('comes back after the time that the caller asked for', async () => {
    const { hf, world } = alone()
    const queue = hf.queue('default')
    await queue.send('again')
    await (await queue.get())[0]?.nack(new Error('busy'), { retryIn: '42s' })
    await world.run(queue.get({ wait: '5m' }))
    expect(world.nowMs).toBe(42_000)
  })

  test('needs no error, and refuses a retryIn that is no duration without settling', async () => {
    const { hf } = alone()
    const queue = hf.queue('default')
    const handle = await queue.send('again')
    const [message] = await queue.get()
    await expect(message!.nack('no', { retryIn: 'soon' as '1s' })).rejects.toMatchObject({
      code: 'HF_BAD_OPTION',
    })
    expect(await handle.state()).toBe('running')
    await message!.nack()
    expect(await handle.state()).toBe('scheduled')
  })

  test('is dead once its attempts are used', async () => {
    const { hf, world } = alone()
    const queue = hf.queue('default')
    const handle = await queue.send('poor', { retry: { attempts: 3 } })
    for (let attempt = 1; attempt <= 3; attempt++) {
      const [message] = await world.run(queue.get({ wait: '1m' }))
      expect(message?.job.attempt).toBe(attempt)
      await message?.nack(new Error(`no ${attempt}`))
    }
    expect(await handle.state()).toBe('dead')
    await expect(handle.result()).rejects.toMatchObject({ code: 'HF_JOB_FAILED', cause: { message: 'no 3' } })
  })

  test('with Fatal is dead at once', async () => {
    const { hf } = alone()
    const queue = hf.queue('default')
    const handle = await queue.send('bad')
    await (await queue.get())[0]?.nack(new Fatal('no such user'))
    expect(await handle.state()).toBe('dead')
  })
})

describe('typed jobs and messages', () => {
  test('may share a queue: what was enqueued as a job can be pulled by hand', async () => {
    const { hf } = alone()
    const job = hf.job({
      name: 'mail',
      input: z.object({ to: z.string() }),
      retry: { attempts: 1 },
      run: () => undefined,
    })
    const handle = await job.enqueue({ to: 'ada' })
    const [message] = await hf.queue('default').get()
    expect(message).toMatchObject({ id: handle.id, name: 'mail', payload: { to: 'ada' } })
    await message?.nack(new Error('no'))
    expect(await handle.state()).toBe('dead')
  })

  test('may share a queue: a message with the name of a job is run by its handler', async () => {
    const { hf, world } = alone()
    const seen: unknown[] = []
    hf.job({ name: 'mail', input: z.object({ to: z.string() }), run: ({ input }) => void seen.push(input) })
    await hf.work()
    const handle = await hf.queue('default').send({ to: 'ada' }, { name: 'mail' })
    await world.run(handle.result())
    expect(seen).toEqual([{ to: 'ada' }])
  })

  test('are counted together: what waits now and what waits for later', async () => {
    const { hf } = alone({ queues: { default: {}, other: {} } })
    const job = hf.job({ name: 'mail', run: () => undefined })
    await job.enqueue()
    await job.enqueue(undefined, { in: '1h' })
    await hf.queue('default').send('x')
    await hf.queue('other').send('y')
    expect(await hf.queue('default').size()).toBe(3)
  })
})

describe('messages that expired', () => {
  /** Each call to the store takes a second, so that passing over them all takes long. */
  async function expired(count: number) {
    const fleet = alone()
    const { hf, world, line, clock } = fleet
    const queue = hf.queue('default')
    for (let n = 0; n < count; n++) await queue.send(n, { expiresIn: '1s' })
    await world.advance(2_000)
    line.fail('cycle', async (perform) => {
      await busy(clock, 1_000)
      return perform()
    })
    return { ...fleet, queue }
  }

  test('are passed over, and the one behind them is given out', async () => {
    const { hf, world } = alone()
    const queue = hf.queue('default')
    for (let n = 0; n < 5; n++) await queue.send(n, { expiresIn: '1s' })
    await world.advance(2_000)
    await queue.send('live')
    const [message] = await world.run(queue.get())
    expect(message?.payload).toBe('live')
    expect(await world.counts()).toEqual({ cancelled: 5, running: 1 })
  })

  test('hold up a get() for its timeout at most, and are settled before the next are claimed', async () => {
    const { queue, world } = await expired(30)
    const beganMs = world.nowMs
    expect(await world.run(queue.get())).toEqual([])
    expect(world.nowMs - beganMs).toBeLessThanOrEqual(12_000)
    expect(await world.counts()).toMatchObject({ cancelled: 5, ready: 25 })
  })

  test('do not keep a get() from hearing its signal', async () => {
    const { queue, world } = await expired(30)
    const abort = new AbortController()
    const got = thrownBy(queue.get({ signal: abort.signal }))
    await world.advance(3_500)
    abort.abort(new Error('no longer needed'))
    await world.advance(2_000)
    expect(await got).toMatchObject({ message: 'no longer needed' })
    expect(await world.counts()).toMatchObject({ cancelled: 2 })
  })

  test('do not hold up a close', async () => {
    const { queue, world } = await expired(30)
    const got = thrownBy(queue.get({ wait: '1h' }))
    await world.advance(3_500)
    const beganMs = world.nowMs
    await world.run(queue.close())
    expect(world.nowMs - beganMs).toBeLessThanOrEqual(3_000)
    expect(await got).toMatchObject({ code: 'HF_CLOSED' })
  })
})
