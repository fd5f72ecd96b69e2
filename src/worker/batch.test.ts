import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { BatchOptions } from '../job/batch.ts'
import type { WorkerId } from '../job/ids.ts'
import { alone, busy, deferred, thrownBy } from '../../test/support/virtual.ts'

/** A batch job that notes the inputs of each call. */
function noting(batch: BatchOptions, parts: { retry?: { attempts: number } } = {}) {
  const fleet = alone({ queues: { default: {}, plain: {} } })
  const calls: number[][] = []
  const job = fleet.hf.batchJob({
    name: 'note',
    input: z.number(),
    batch,
    ...parts,
    run: ({ inputs }) => {
      calls.push([...inputs])
      return inputs.map((input) => input * 10)
    },
  })
  return { ...fleet, calls, job }
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1)

describe('a batch handler', () => {
  test('is given many jobs at a time, and each gets its own result', async () => {
    const { hf, world, job, calls } = noting({ size: 4 })
    const handles = await Promise.all(upTo(10).map((input) => job.enqueue(input)))
    await hf.work({ concurrency: 1 })
    expect(await world.run(Promise.all(handles.map((handle) => handle.result())))).toEqual(
      upTo(10).map((input) => input * 10),
    )
    expect(calls.map(({ length }) => length)).toEqual([4, 4, 2])
    expect(calls.flat()).toEqual(upTo(10))
  })

  test('takes one slot, however many jobs are in it', async () => {
    const { hf, world, clock, told } = alone()
    let most = 0
    let now = 0
    const job = hf.batchJob({
      name: 'slow',
      batch: { size: 5 },
      async run() {
        most = Math.max(most, ++now)
        await busy(clock, 1_000)
        now--
      },
    })
    await job.enqueueMany(Array.from({ length: 20 }, () => undefined))
    await hf.work({ concurrency: 2 })
    await world.until(() => told.of('job.completed').length === 20)
    expect(most).toBe(2)
  })

  test('waits for enough of them, but not for ever', async () => {
    const { hf, world, job, calls } = noting({ size: 10, fill: 3, wait: '5s' })
    await hf.work()
    await job.enqueue(1)
    await world.advance(1_000)
    await job.enqueue(2)
    await world.advance(1_000)
    expect(calls).toEqual([])
    await job.enqueue(3)
    await world.advance(10)
    expect(calls).toEqual([[1, 2, 3]])
    await job.enqueue(4)
    await world.advance(4_900)
    expect(calls).toHaveLength(1)
    await world.advance(200)
    expect(calls).toEqual([[1, 2, 3], [4]])
  })

  test('goes on claiming while a batch is short of jobs', async () => {
    const { hf, world, job, calls } = noting({ size: 100, fill: 100, wait: '1m' })
    await hf.work({ concurrency: 1 })
    for (const input of upTo(100)) {
      await job.enqueue(input)
      await world.advance(20)
    }
    await world.advance(100)
    expect(calls).toEqual([upTo(100)])
  })

  test('does not make its worker hoard the plain jobs of a queue that they share', async () => {
    const { hf, world, told, clock } = alone()
    hf.batchJob({ name: 'rare', batch: { size: 500 }, run: () => undefined })
    const plain = hf.job({ name: 'plain', run: () => busy(clock, 1_000) })
    await plain.enqueueMany(Array.from({ length: 1_000 }, () => undefined))
    await hf.work({ concurrency: 5 })
    await world.advance(10_000)
    expect(told.of('job.released').length).toBeLessThan(1_100)
    const before = told.of('job.released').length
    await world.advance(10_000)
    expect(told.of('job.released').length - before).toBeLessThan(50)
  })

  test('runs what is not its own beside it', async () => {
    const { hf, world, job, calls, told } = noting({ size: 3, fill: 3, wait: '1h' })
    const plain = hf.job({ name: 'plain', run: () => 'ran' })
    await job.enqueue(1)
    const handle = await plain.enqueue()
    await hf.work({ concurrency: 1 })
    expect(await world.run(handle.result())).toBe('ran')
    await job.enqueueMany([2, 3])
    await world.until(() => told.of('job.completed').length === 4)
    expect(calls).toEqual([[1, 2, 3]])
  })
})

describe('what a batch handler returns', () => {
  test('decides for each job alone: only what failed is retried', async () => {
    const { hf, world, told } = alone()
    const job = hf.batchJob({
      name: 'mixed',
      input: z.number(),
      batch: { size: 10 },
      retry: { attempts: 2, delay: '1s', jitter: false },
      run: ({ jobs }) =>
        jobs.map(({ input, job: { attempt }, snooze }) => {
          if (input === 2 && attempt === 1) return new Error('not two')
          if (input === 3 && attempt === 1 && told.of('job.snoozed').length === 0) return snooze('1s')
          return `${input} at attempt ${attempt}`
        }),
    })
    const handles = await Promise.all([1, 2, 3].map((input) => job.enqueue(input)))
    await hf.work()
    const results = await world.run(Promise.all(handles.map((handle) => handle.result())))
    expect(results).toEqual(['1 at attempt 1', '2 at attempt 2', '3 at attempt 1'])
    expect(told.of('job.failed')).toMatchObject([{ error: { message: 'not two' }, attempt: 1 }])
  })

  test('may be what Promise.allSettled() gives', async () => {
    const { hf, world } = alone()
    const job = hf.batchJob({
      name: 'settled',
      input: z.number(),
      retry: { attempts: 1 },
      run: ({ inputs }) =>
        Promise.allSettled(
          inputs.map(async (input) => {
            if (input === 2) throw new Error('not two')
            return { twice: input * 2 }
          }),
        ),
    })
    const [one, two] = await Promise.all([1, 2].map((input) => job.enqueue(input)))
    await hf.work()
    expect(await world.run(one!.result())).toEqual({ twice: 2 })
    await expect(world.run(two!.result())).rejects.toThrow('not two')
  })

  test('may be promises: the call is over when the last of them is', async () => {
    const { hf, world, told, clock } = alone()
    const job = hf.batchJob({
      name: 'promises',
      input: z.number(),
      batch: { size: { start: 2, over: 1, growBelow: '1s' } },
      retry: { attempts: 1 },
      run: ({ inputs }) =>
        inputs.map(async (input) => {
          await busy(clock, 4_000)
          if (input === 2) throw new Error('not two')
          return input
        }),
    })
    const handles = [await job.enqueue(1), await job.enqueue(2)]
    await hf.work()
    const one: number = await world.run(handles[0]!.result())
    expect(one).toBe(1)
    expect(await thrownBy(world.run(handles[1]!.result()))).toMatchObject({ code: 'HF_JOB_FAILED' })
    expect(told.of('batch.resized')).toEqual([])
  })

  test('may be nothing: then all went well', async () => {
    const { hf, world } = alone()
    const job = hf.batchJob({ name: 'void', run: async () => undefined })
    const handle = await job.enqueue()
    await hf.work()
    expect(await world.run(handle.result())).toBeUndefined()
  })

  test.each([
    ['too few results', () => [1], /returned 1 results for 2 jobs/],
    ['something else', () => 'done' as unknown as number[], /returned a string for 2 jobs/],
  ])('is refused where it is %s, and all are retried', async (_, returns, message) => {
    const { hf, world, told } = alone()
    const job = hf.batchJob({
      name: 'wrong',
      batch: { size: 2, fill: 2 },
      retry: { attempts: 2 },
      run: returns,
    })
    await job.enqueueMany([undefined, undefined])
    await hf.work()
    await world.until(() => told.of('job.failed').length === 2)
    for (const failure of told.of('job.failed')) {
      expect(failure).toMatchObject({
        final: false,
        error: { code: 'HF_BATCH_RESULT', message: expect.stringMatching(message) },
      })
    }
  })

  test('is an error for all of them where it throws', async () => {
    const { hf, world, told } = alone()
    const job = hf.batchJob({
      name: 'throws',
      batch: { size: 3, fill: 3 },
      run: () => {
        throw new Error('all of you')
      },
    })
    await job.enqueueMany([undefined, undefined, undefined])
    await hf.work()
    await world.until(() => told.of('job.failed').length === 3)
    expect(new Set(told.of('job.failed').map(({ error }) => error.message))).toEqual(new Set(['all of you']))
  })
})

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
    expect(await first.cancel('not this one')).toBe(true)
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
    await handle.cancel()
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
    expect(calls.map(({ length }) => length).toSorted()).toEqual([1, 2])
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

describe('an adaptive size', () => {
  test('starts at ten, grows while batches are quick and shrinks while they are slow', async () => {
    const { hf, world, told, clock } = alone()
    let takesMs = 100
    const sizes: number[] = []
    const job = hf.batchJob({
      name: 'adaptive',
      async run({ jobs }) {
        sizes.push(jobs.length)
        await busy(clock, takesMs)
      },
    })
    await job.enqueueMany(Array.from({ length: 1_500 }, () => undefined))
    await hf.work({ concurrency: 1 })
    await world.until(() => sizes.includes(50))
    expect(told.of('batch.resized').map(({ from, to }) => [from, to])).toEqual([
      [10, 15],
      [15, 23],
      [23, 35],
      [35, 50],
    ])
    expect(sizes.slice(0, 11)).toEqual([...Array.from({ length: 10 }, () => 10), 15])
    takesMs = 6_000
    await world.until(() => told.of('batch.resized').length === 5)
    const resized = told.of('batch.resized')[4]
    expect(resized).toMatchObject({ job: 'adaptive', from: 50, to: 25 })
    expect(resized?.meanMs).toBeGreaterThan(5_000)
  })
})

describe('a definition of a batch job', () => {
  test.each([
    [{ size: 0 }, /batch\.size/],
    [{ size: 1_001 }, /batch\.size/],
    [{ size: 5, fill: 6 }, /batch\.fill/],
    [{ wait: 'soon' }, /batch\.wait/],
    [{ size: { min: 10, max: 5 } }, /batch\.size\.min/],
    [{ size: { growBelow: '9s' } }, /growBelow/],
    [{ sise: 5 }, /no option "sise"/],
    [7, /not an object/],
  ])('is refused with %j', (batch, message) => {
    const { hf } = alone()
    expect(() => hf.batchJob({ name: 'bad', batch: batch as never, run: () => undefined })).toThrow(message)
  })

  test('what its handler enqueues inherits nothing of many jobs, and all of one', async () => {
    const { hf, world, told } = alone()
    const child = hf.job({ name: 'child', run: ({ job }) => job.correlationId })
    const job = hf.batchJob({
      name: 'parent',
      batch: { size: 2, fill: 2, wait: '5s' },
      run: async () => {
        await child.enqueue()
      },
    })
    await job.enqueue(undefined, { correlationId: 'a' })
    await job.enqueue(undefined, { correlationId: 'b' })
    await hf.work()
    await world.until(() => told.of('job.completed').length === 3)
    await job.enqueue(undefined, { correlationId: 'c' })
    await world.until(() => told.of('job.completed').length === 5)
    const ids = told
      .of('job.completed')
      .filter((one) => one.job === 'child')
      .map(({ correlationId }) => correlationId)
    expect(ids[0]).not.toMatch(/^[ab]$/)
    expect(ids[1]).toBe('c')
  })
})
