import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { alone, busy, deferred, refused } from '../../test/support/virtual.ts'
import { HoldfastError } from '../errors.ts'

describe('cancelling a running job', () => {
  test('aborts its signal at once with the reason, and writes it as cancelled', async () => {
    const { hf, world, told, clock } = alone()
    const reasons: unknown[] = []
    const job = hf.job({
      name: 'long',
      async run({ signal }) {
        await busy(clock, 60_000, signal).finally(() => reasons.push(signal.reason))
      },
    })
    const handle = await job.enqueue()
    await hf.work()
    await world.advance(5_000)
    expect(await handle.cancel('not needed')).toBe('requested')
    await world.advance(1)
    expect(reasons).toMatchObject([{ why: 'cancelled', message: 'not needed' }])
    expect(await world.record(handle.id)).toMatchObject({ state: 'cancelled', reason: 'not needed' })
    expect(told.of('job.cancelled')).toMatchObject([
      { id: handle.id, reason: 'not needed', durationMs: 5_000 },
    ])
    expect(told.of('job.failed')).toEqual([])
  })

  test('of another process is told by the next heartbeat where the hint was lost', async () => {
    const { hf, world, told, clock, line } = alone()
    line.losesHints = true
    const job = hf.job({ name: 'long', run: ({ signal }) => busy(clock, 600_000, signal) })
    const { id } = await job.enqueue()
    await hf.work()
    await world.advance(5_000)
    const far = await world.process().hf.contract({ name: 'long' }).get(id)
    expect(await world.run(far!.cancel())).toBe('requested')
    const tookMs = await world.until(() => told.of('job.cancelled').length === 1)
    expect(tookMs).toBeLessThanOrEqual(10_000)
  })

  test('gives up a handler that ignores it after five seconds', async () => {
    const { hf, world, told } = alone()
    const gate = deferred<string>()
    const handle = await hf.job({ name: 'deaf', run: () => gate.promise }).enqueue()
    await hf.work()
    await world.advance(1_000)
    await handle.cancel()
    await world.advance(4_900)
    expect(await handle.state()).toBe('running')
    await world.advance(200)
    expect(told.of('job.stuck')).toMatchObject([{ why: 'cancelled' }])
    expect(await handle.state()).toBe('cancelled')
    gate.resolve('late')
    await world.advance(100)
    expect(await handle.state()).toBe('cancelled')
  })

  test('gives it up in time also where heartbeats repeat the notice', async () => {
    const { hf, world, told } = alone()
    const gate = deferred()
    const handle = await hf.job({ name: 'deaf', run: () => gate.promise }).enqueue()
    await hf.work({ lease: '6s' })
    await world.advance(1_000)
    await handle.cancel()
    await world.advance(5_100)
    expect(told.of('job.stuck')).toHaveLength(1)
    expect(await handle.state()).toBe('cancelled')
    gate.resolve()
  })

  test('comes too late where the handler has done its work: the job is completed', async () => {
    const { hf, world } = alone()
    const gate = deferred<string>()
    const handle = await hf.job({ name: 'deaf', run: () => gate.promise }).enqueue()
    await hf.work()
    await world.advance(1_000)
    await handle.cancel()
    await world.advance(1_000)
    gate.resolve('done')
    expect(await world.run(handle.result())).toBe('done')
  })

  test('cancels it also where the attempt fails meanwhile: nothing cancelled runs again', async () => {
    const { hf, world, line } = alone()
    const gate = deferred()
    let runs = 0
    const job = hf.job({
      name: 'fails',
      run: () => {
        runs++
        return gate.promise
      },
    })
    const handle = await job.enqueue()
    await hf.work()
    await world.advance(1_000)
    line.fail('heartbeat', refused)
    expect(await handle.cancel('stop it')).toBe('requested')
    gate.reject(new Error('fails'))
    await world.advance(60_000)
    line.mend()
    expect(runs).toBe(1)
    expect(await world.record(handle.id)).toMatchObject({ state: 'cancelled', reason: 'stop it' })
  })
})

describe('cancelling a job whose worker is silent', () => {
  /** A cancel from another process, which can ask the store once. */
  async function cancelOnce(fails: () => Promise<never>) {
    const parts = alone()
    const { hf, world, line } = parts
    line.losesHints = true
    const handle = await hf.job({ name: 'long', run: () => new Promise(() => undefined) }).enqueue()
    await hf.work()
    await world.until(() => parts.told.of('job.started').length === 1)
    const other = world.process()
    const far = await other.hf.contract({ name: 'long' }).get(handle.id)
    other.line.fail('admin.change', (perform) => perform(), 1)
    other.line.fail('admin.change', fails)
    return { ...parts, other, cancelling: far!.cancel(), begunMs: world.nowMs }
  }

  test('waits until nothing can start any more, also if the store refuses to be asked again', async () => {
    const denied = new HoldfastError('HF_STORE_DENIED', 'The database denied access (SQLSTATE 42501).')
    const { world, cancelling, begunMs } = await cancelOnce(() => Promise.reject(denied))
    expect(await world.run(cancelling)).toBe('requested')
    expect(world.nowMs - begunMs).toBeGreaterThanOrEqual(1_000)
  })

  test('rejects if it cannot wait, because its process closes', async () => {
    const { world, other, cancelling } = await cancelOnce(() => Promise.reject(new Error('connection reset')))
    const ended = expect(cancelling).rejects.toMatchObject({ code: 'HF_CLOSED' })
    await world.advance(100)
    await world.run(other.hf.close())
    await ended
  })
})

describe('cancelling a job that is claimed but not started', () => {
  test('settles it as cancelled without running it', async () => {
    const { hf, world, told, clock } = alone()
    const gate = deferred()
    const ran: number[] = []
    const job = hf.job({
      name: 'job',
      input: z.number(),
      async run({ input }) {
        ran.push(input)
        await (input < 300 ? busy(clock, 1) : gate.promise)
      },
    })
    const { ids } = await job.enqueueMany(Array.from({ length: 320 }, (_, n) => n))
    await hf.work({ concurrency: 1 })
    await world.until(() => ran.at(-1) === 300)
    const waiting = ids[305]!
    expect(await world.record(waiting)).toMatchObject({ state: 'running' })
    expect(await world.run((await job.get(waiting))!.cancel('no'))).toBe('cancelled')
    await world.advance(10)
    expect(told.about(waiting)).toEqual(['job.enqueued', 'job.cancelled'])
    expect(await world.record(waiting)).toMatchObject({ state: 'cancelled', reason: 'no' })
    gate.resolve()
    await world.until(() => told.of('job.completed').length === 319)
    expect(ran).not.toContain(305)
  })
})

describe('cancelling a job that waits', () => {
  test.each([
    ['ready', {}],
    ['scheduled', { in: '1m' }],
  ] as const)('ends a %s one at once; no worker ever claims it', async (state, options) => {
    const { hf, world, told } = alone()
    const handle = await hf.job({ name: 'job', run: () => undefined }).enqueue(undefined, options)
    expect(await handle.state()).toBe(state)
    expect(await handle.cancel()).toBe('cancelled')
    await hf.work()
    await world.advance(120_000)
    expect(told.of('job.started')).toEqual([])
    expect(await handle.state()).toBe('cancelled')
  })

  test('ends one that waits for its retry', async () => {
    const { hf, world, told } = alone()
    const job = hf.job({
      name: 'job',
      run: () => {
        throw new Error('no')
      },
    })
    const handle = await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.failed').length === 1)
    expect(await handle.cancel()).toBe('cancelled')
    await world.advance(600_000)
    expect(told.of('job.started')).toHaveLength(1)
  })
})
