import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { WorkerId } from '../job/ids.ts'
import { noting } from '../../test/support/noting.ts'
import { alone, busy, deferred } from '../../test/support/virtual.ts'

describe('a job of a batch', () => {
  test('whose input is refused fails alone', async () => {
    const { hf, world, told } = alone()
    let accepts: z.ZodType = z.union([z.number(), z.string()])
    const calls: unknown[][] = []
    const job = hf.batchJob({
      name: 'picky',
      input: z.custom<number | string>((value) => accepts.safeParse(value).success),
      batch: { size: 3, fill: 3 },
      run: ({ inputs }) => void calls.push([...inputs]),
    })
    await job.enqueueMany([1, 'two', 3])
    accepts = z.number()
    await hf.work()
    await world.until(() => told.of('job.completed').length === 2)
    expect(calls).toEqual([[1, 3]])
    expect(told.of('job.failed')).toMatchObject([{ final: true, kind: 'permanent' }])
  })

  test('has its own middleware around it, whose context it carries', async () => {
    const { hf, world } = alone()
    let out = 0
    const tenants = hf.use(async ({ job, next }) => {
      const done = await next({ tenant: job.tags[0] ?? 'none' })
      out++
      return done
    })
    const job = tenants.batchJob({
      name: 'tenants',
      batch: { size: 2, fill: 2 },
      run: ({ jobs }) => jobs.map(({ ctx }) => ctx.tenant),
    })
    const handles = [
      await job.enqueue(undefined, { tags: ['a'] }),
      await job.enqueue(undefined, { tags: ['b'] }),
    ]
    await hf.work()
    expect(await world.run(Promise.all(handles.map((handle) => handle.result())))).toEqual(['a', 'b'])
    expect(out).toBe(2)
  })

  test('can be cancelled alone; the batch goes on', async () => {
    const { hf, world, told } = alone()
    const gate = deferred()
    const aborted: boolean[] = []
    const job = hf.batchJob({
      name: 'gated',
      batch: { size: 2, fill: 2 },
      async run({ jobs, signal }) {
        await gate.promise
        aborted.push(signal.aborted, ...jobs.map((one) => one.signal.aborted))
        return jobs.map((one) => (one.signal.aborted ? new Error('stopped') : 'done'))
      },
    })
    const [first, second] = [await job.enqueue(), await job.enqueue()]
    await hf.work()
    await world.until(() => told.of('job.started').length === 2)
    expect(await first.cancel('not this one')).toBe('requested')
    await world.advance(1_000)
    gate.resolve()
    expect(await world.run(second.result())).toBe('done')
    await world.until(() => told.of('job.cancelled').length === 1)
    expect(aborted).toEqual([false, true, false])
  })

  test('can be cancelled while it is gathered', async () => {
    const { hf, world, job, calls, told } = noting({ size: 3, fill: 3, wait: '1h' })
    const handle = await job.enqueue(1)
    await hf.work()
    await world.advance(2_000)
    expect(await world.run(handle.state())).toBe('running')
    expect(await world.run(handle.cancel())).toBe('cancelled')
    await world.until(() => told.of('job.cancelled').length === 1)
    await job.enqueueMany([2, 3, 4])
    await world.until(() => told.of('job.completed').length === 3)
    expect(calls).toEqual([[2, 3, 4]])
  })

  test('that lost a worker before is run alone', async () => {
    const { hf, world, job, calls, told } = noting({ size: 10, fill: 2 })
    await job.enqueueMany([1, 2, 3])
    const lost = '00000000-0000-7000-8000-000000000001' as WorkerId
    await world.store.register(lost, 30_000)
    const claim = { queue: 'default', limit: 1, suspects: false }
    await world.store.cycle({ worker: lost, settle: [], claim })
    await world.store.retire(lost)
    await hf.work()
    await world.until(() => told.of('job.completed').length === 3)
    expect(calls.map(({ length }) => length).toSorted((a, b) => a - b)).toEqual([1, 2])
  })
})

describe('on the way to a batch handler', () => {
  /** Jobs whose middleware takes its time: as long as the tag says, or until the job is told to end. */
  function slowArrivals(fill: number, parts: { timeout?: '2s'; retry?: { attempts: number } } = {}) {
    const fleet = alone()
    const calls: string[][] = []
    const signals: AbortSignal[] = []
    const job = fleet.hf
      .use(async ({ job: { tags }, signal, next }) => {
        await busy(fleet.clock, Number(tags[0] ?? 0), tags[1] === 'deaf' ? undefined : signal)
        return next()
      })
      .batchJob({
        name: 'arriving',
        input: z.string(),
        batch: { size: fill, fill },
        ...parts,
        run: async ({ inputs, signal }) => {
          calls.push([...inputs])
          signals.push(signal)
          await busy(fleet.clock, 3_000, signal)
        },
      })
    const enqueue = (name: string, ms: number, deaf = false) =>
      job.enqueue(name, { tags: [String(ms), ...(deaf ? ['deaf'] : [])] })
    return { ...fleet, enqueue, calls, signals }
  }

  test('one that is cancelled is not in the batch, and nobody is called twice', async () => {
    const { hf, world, told, enqueue, calls } = slowArrivals(3)
    const first = await enqueue('a', 0)
    await enqueue('b', 0)
    await enqueue('c', 800)
    await hf.work()
    await world.until(() => told.of('job.started').length === 3)
    await world.advance(100)
    await first.cancel()
    await world.until(() => told.of('job.completed').length === 2)
    expect(calls).toEqual([['b', 'c']])
    expect(told.of('job.cancelled')).toHaveLength(1)
    expect(told.of('job.stuck')).toEqual([])
  })

  test('one that hangs holds up its company for a second only', async () => {
    const { hf, world, told, enqueue, calls } = slowArrivals(3, { timeout: '2s', retry: { attempts: 1 } })
    await enqueue('a', 0)
    await enqueue('b', 0)
    await enqueue('c', 600_000)
    await hf.work()
    await world.until(() => told.of('job.failed').length === 3)
    expect(calls).toEqual([['a', 'b']])
    expect(told.of('job.failed').map(({ kind }) => kind)).toEqual(['timeout', 'timeout', 'timeout'])
  })

  test('one that comes late is a batch of its own, within the same slot', async () => {
    const { hf, world, told, enqueue, calls } = slowArrivals(3)
    await enqueue('a', 0)
    await enqueue('b', 0)
    await enqueue('c', 2_000)
    const worker = await hf.work({ concurrency: 1 })
    await world.until(() => calls.length === 2)
    expect(calls).toEqual([['a', 'b'], ['c']])
    expect(worker.health()).toMatchObject({ slots: 1, busy: 1, running: 3 })
    await world.until(() => told.of('job.completed').length === 3)
    expect(worker.health()).toMatchObject({ busy: 0, running: 0 })
  })

  test('what is over by then is not called', async () => {
    const { hf, world, told, enqueue, calls } = slowArrivals(2, { timeout: '2s', retry: { attempts: 1 } })
    await enqueue('a', 10_000, true)
    await enqueue('b', 10_000, true)
    await hf.work()
    await world.until(() => told.of('job.failed').length === 2)
    await world.advance(20_000)
    expect(calls).toEqual([])
  })

  test('the signal of the batch is that of those who are in it', async () => {
    const { hf, world, told, enqueue, signals } = slowArrivals(3)
    const [dropped, first] = [await enqueue('c', 900), await enqueue('a', 0)]
    await enqueue('b', 0)
    await hf.work()
    await world.until(() => told.of('job.started').length === 3)
    await dropped.cancel()
    await world.until(() => signals.length === 1)
    await first.cancel()
    await world.advance(1_000)
    expect(signals[0]?.aborted).toBe(false)
    await world.until(() => told.of('job.completed').length >= 1)
  })
})

describe('the time of a batch', () => {
  test('is that of the job: all of them time out together', async () => {
    const { hf, world, told, clock } = alone()
    const reasons: unknown[] = []
    const job = hf.batchJob({
      name: 'endless',
      batch: { size: 2, fill: 2 },
      timeout: '10s',
      retry: { attempts: 1 },
      async run({ signal }) {
        await busy(clock, 60_000, signal).finally(() => reasons.push(signal.reason))
      },
    })
    await job.enqueueMany([undefined, undefined])
    await hf.work()
    await world.until(() => told.of('job.failed').length === 2)
    expect(reasons).toMatchObject([{ why: 'timeout' }])
    expect(told.of('job.failed')).toMatchObject([{ kind: 'timeout' }, { kind: 'timeout' }])
  })

  test('ends with the worker: what is gathered is given back, what runs may finish', async () => {
    const { hf, world, told, clock } = alone()
    const job = hf.batchJob({
      name: 'leaving',
      batch: { size: 2, fill: 2, wait: '1h' },
      run: () => busy(clock, 3_000),
    })
    const handles = [await job.enqueue(), await job.enqueue(), await job.enqueue()]
    const worker = await hf.work()
    await world.until(() => told.of('job.started').length === 2)
    await world.run(worker.stop())
    const states = await Promise.all(handles.map((handle) => handle.state()))
    expect(states).toEqual(['completed', 'completed', 'ready'])
  })
})
