import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { noting } from '../../test/support/noting.ts'
import { alone, busy, refused, requestLost, thrownBy } from '../../test/support/virtual.ts'

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

  test.each([
    ['a call that hangs', requestLost],
    ['the pause after a call that failed', refused],
  ])('that is ready does not wait for %s', async (_, fault) => {
    const { hf, world, line, job, calls } = noting({ size: 10, fill: 2, wait: '2s' })
    await hf.work()
    await world.advance(1_000)
    await job.enqueue(1)
    await world.advance(500)
    line.fail('cycle', fault)
    await world.advance(1_499)
    expect(calls).toEqual([])
    await world.advance(2)
    expect(calls).toEqual([[1]])
    line.mend()
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
    // The first claim has room for a batch. The worker gives the plain jobs back, each of them once.
    const released = told.of('job.released').map(({ id }) => id)
    expect(new Set(released).size).toBe(released.length)
    await world.advance(10_000)
    // From then on it claims about as many as it has slots.
    expect(told.of('job.released').length - released.length).toBeLessThanOrEqual(5)
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

  test('may be what nobody can look at: that fails its own job alone, and the slot is free again', async () => {
    const { hf, world, told } = alone()
    const strange = (trap: 'has' | 'getPrototypeOf'): object =>
      new Proxy({}, { [trap]: (_: object, key?: unknown) => (key === 'then' ? false : fail()) })
    const fail = (): never => {
      throw new Error('do not look')
    }
    const job = hf.batchJob({
      name: 'strange',
      batch: { size: 4, fill: 4 },
      retry: { attempts: 1 },
      run: (): unknown[] => ['first', strange('has'), strange('getPrototypeOf'), 'last'],
    })
    await job.enqueueMany([undefined, undefined, undefined, undefined])
    const worker = await hf.work({ concurrency: 1 })
    await world.until(() => told.of('job.completed').length === 2 && told.of('job.failed').length === 2)
    expect(worker.health()).toMatchObject({ busy: 0, running: 0 })
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
    [{ sise: 5 }, /Unknown option `batchJob\(\)\.batch\.sise`/],
    [7, /it must be an object/],
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
