import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { JobUpdate } from './handle.ts'
import { Fatal } from '../errors.ts'
import { alone, busy, deferred, letPromisesRun, refused, thrownBy } from '../../test/support/virtual.ts'

describe('a cancel', () => {
  test.each(['a\0b', 'a\ud83d', 'x'.repeat(4_001), 7 as unknown as string])(
    'refuses a reason that no store can hold, and leaves the job alone: %j',
    async (reason) => {
      const { hf, world } = alone()
      const handle = await hf.job({ name: 'job', run: () => undefined }).enqueue()
      expect(await world.run(thrownBy(handle.cancel(reason)))).toMatchObject({
        code: 'HF_BAD_OPTION',
        message: expect.stringMatching(/^`cancel\(\)\.reason` is /),
      })
      expect(await handle.state()).toBe('ready')
    },
  )

  test('with an empty reason has none', async () => {
    const { hf } = alone()
    const handle = await hf.job({ name: 'job', run: () => undefined }).enqueue()
    expect(await handle.cancel('')).toBe('cancelled')
    expect(await handle.read()).toMatchObject({ reason: null })
  })
})

describe("a handle's result", () => {
  test('is what the handler returned, as JSON keeps it', async () => {
    const { hf, world } = alone()
    const job = hf.job({ name: 'report', run: () => ({ pages: 3, at: new Date(0) }) })
    const handle = await job.enqueue()
    await hf.work()
    expect(await world.run(handle.result())).toEqual({ pages: 3, at: '1970-01-01T00:00:00.000Z' })
  })

  test('is undefined where the handler returned nothing', async () => {
    const { hf, world } = alone()
    const handle = await hf.job({ name: 'quiet', run: () => undefined }).enqueue()
    await hf.work()
    expect(await world.run(handle.result())).toBeUndefined()
  })

  test('comes at once where this process runs the job, without waiting for a poll', async () => {
    const { hf, world, clock, told } = alone()
    const job = hf.job({ name: 'slow', run: () => busy(clock, 12_345) })
    await hf.work()
    const handle = await job.enqueue()
    await world.run(handle.result())
    expect(told.of('job.completed')).toHaveLength(1)
    expect(world.nowMs).toBeLessThan(12_345 + 50)
  })

  test('comes within a second where another process runs the job', async () => {
    const { hf, world } = alone()
    const other = world.process()
    const define = (on: typeof hf) => on.job({ name: 'slow', run: () => busy(other.clock, 20_000) })
    define(other.hf)
    await other.hf.work()
    const handle = await define(hf).enqueue()
    await world.run(handle.result())
    expect(world.nowMs).toBeLessThan(21_100)
  })

  test('of a dead letter is HF_JOB_FAILED, with the last error as its cause', async () => {
    const { hf, world } = alone()
    const job = hf.job({
      name: 'broken',
      run: () => {
        throw new Fatal('no such user')
      },
    })
    const handle = await job.enqueue()
    await hf.work()
    expect(await world.run(thrownBy(handle.result()))).toMatchObject({
      code: 'HF_JOB_FAILED',
      message: expect.stringMatching(/no such user/),
      cause: { name: 'Fatal', message: 'no such user' },
    })
  })

  test('of a cancelled job is HF_JOB_CANCELLED, with the reason', async () => {
    const { hf, world } = alone()
    const handle = await hf.job({ name: 'job', run: () => undefined }).enqueue()
    await handle.cancel('no longer needed')
    expect(await world.run(thrownBy(handle.result()))).toMatchObject({
      code: 'HF_JOB_CANCELLED',
      message: expect.stringMatching(/no longer needed/),
    })
  })

  test('that was too large to keep is HF_RESULT_DROPPED; the job is completed all the same', async () => {
    const { hf, world } = alone()
    const handle = await hf.job({ name: 'huge', run: () => 'x'.repeat(300_000) }).enqueue()
    await hf.work()
    expect(await world.run(thrownBy(handle.result()))).toMatchObject({ code: 'HF_RESULT_DROPPED' })
    expect(await handle.state()).toBe('completed')
  })

  test('of a job that the store has forgotten is HF_JOB_NOT_FOUND', async () => {
    const { hf, world, told } = alone({ keep: { completed: '1m' } })
    const handle = await hf.job({ name: 'job', run: () => undefined }).enqueue()
    await hf.work()
    await world.until(() => told.of('job.completed').length === 1)
    await world.advance(120_000)
    for (const asked of [handle.result(), handle.state(), handle.cancel()]) {
      expect(await world.run(thrownBy(asked))).toMatchObject({ code: 'HF_JOB_NOT_FOUND' })
    }
  })

  test('is HF_RESULT_TIMEOUT where the job is not finished in time: five minutes unless told', async () => {
    const { hf, world } = alone()
    const handle = await hf.job({ name: 'job', run: () => undefined }).enqueue()
    expect(await world.run(thrownBy(handle.result({ timeout: '7s' })))).toMatchObject({
      code: 'HF_RESULT_TIMEOUT',
      message: expect.stringMatching(/7s/),
    })
    expect(world.nowMs).toBe(7_000)
    await world.run(thrownBy(handle.result()))
    expect(world.nowMs).toBe(307_000)
  })

  test('ends at once with the reason of an aborted signal', async () => {
    const { hf, world } = alone()
    const handle = await hf.job({ name: 'job', run: () => undefined }).enqueue()
    const abort = new AbortController()
    const asked = thrownBy(handle.result({ signal: abort.signal }))
    await world.advance(10_000)
    abort.abort(new Error('the user left'))
    await letPromisesRun()
    expect(await asked).toMatchObject({ message: 'the user left' })
    expect(world.clock.nextDueMs()).toBeUndefined()
    await expect(handle.result({ signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' })
  })

  test('outlives a short outage of the store', async () => {
    const { hf, world, line } = alone()
    const handle = await hf.job({ name: 'job', run: () => 'done' }).enqueue(undefined, { in: '1m' })
    await hf.work()
    const asked = handle.result()
    await world.advance(30_000)
    line.fail('admin.get', refused)
    await world.advance(4_000)
    line.mend()
    expect(await world.run(asked)).toBe('done')
  })
})

describe("a handle's cancel", () => {
  test('ends a waiting job for good', async () => {
    const { hf, world } = alone()
    let runs = 0
    const handle = await hf.job({ name: 'job', run: () => void runs++ }).enqueue()
    expect(await handle.cancel('changed my mind')).toBe('cancelled')
    await hf.work()
    await world.advance(60_000)
    expect(runs).toBe(0)
    expect(await world.record(handle.id)).toMatchObject({ state: 'cancelled', reason: 'changed my mind' })
  })

  test('is too late for a finished job', async () => {
    const { hf, world, told } = alone()
    const handle = await hf.job({ name: 'job', run: () => undefined }).enqueue()
    await hf.work()
    await world.until(() => told.of('job.completed').length === 1)
    expect(await handle.cancel()).toBe('too_late')
    expect(await handle.state()).toBe('completed')
  })

  test('keeps the reason of the first, and tells the second that it was too late', async () => {
    const { hf, world } = alone()
    const handle = await hf.job({ name: 'job', run: () => undefined }).enqueue()
    expect(await handle.cancel('first')).toBe('cancelled')
    expect(await handle.cancel('second')).toBe('too_late')
    expect(await world.record(handle.id)).toMatchObject({ reason: 'first' })
  })
})

describe("a handle's watch", () => {
  test('yields each change of state and progress, and ends when the job is final', async () => {
    const { hf, world, clock } = alone()
    const job = hf.job({
      name: 'steps',
      async run({ progress }) {
        progress(1, 4, 'reading')
        await busy(clock, 3_000)
        progress(3, 4)
        await busy(clock, 3_000)
      },
    })
    const handle = await job.enqueue(undefined, { in: '2s' })
    await hf.work()
    const seen: JobUpdate[] = []
    await world.run(
      (async () => {
        for await (const update of handle.watch()) seen.push(update)
      })(),
    )
    expect(seen).toEqual([
      { state: 'scheduled', progress: null, done: null, total: null, note: null },
      { state: 'running', progress: null, done: null, total: null, note: null },
      { state: 'running', progress: 0.25, done: 1, total: 4, note: 'reading' },
      { state: 'running', progress: 0.75, done: 3, total: 4, note: null },
      { state: 'completed', progress: 0.75, done: 3, total: 4, note: null },
    ])
  })

  test('shows a count where the handler gave no total', async () => {
    const { hf, world, clock } = alone()
    const job = hf.job({
      name: 'rows',
      async run({ progress }) {
        progress(120)
        await busy(clock, 2_000)
      },
    })
    const handle = await job.enqueue()
    await hf.work()
    const seen: (number | null)[] = []
    await world.run(
      (async () => {
        for await (const update of handle.watch()) seen.push(update.done)
      })(),
    )
    expect(seen.at(-1)).toBe(120)
  })

  test('leaves nothing behind when its reader leaves', async () => {
    const { hf, world } = alone()
    const handle = await hf.job({ name: 'job', run: () => undefined }).enqueue()
    for await (const update of handle.watch()) {
      expect(update.state).toBe('ready')
      break
    }
    expect(world.clock.nextDueMs()).toBeUndefined()
  })

  test('ends with the reason of an aborted signal', async () => {
    const { hf, world } = alone()
    const handle = await hf.job({ name: 'job', run: () => undefined }).enqueue()
    const abort = new AbortController()
    const watching = thrownBy(
      (async () => {
        for await (const _ of handle.watch({ signal: abort.signal })) continue
      })(),
    )
    await world.advance(5_000)
    abort.abort(new Error('enough'))
    expect(await watching).toMatchObject({ message: 'enough' })
  })
})

describe('job.get', () => {
  test('finds a job by its id, also one that another process enqueued', async () => {
    const { hf, world } = alone()
    const other = world.process()
    const { id } = await other.hf.job({ name: 'job', run: () => undefined }).enqueue()
    const job = hf.job({ name: 'job', run: () => undefined })
    const found = await job.get(id)
    expect(found).toMatchObject({ id, duplicate: false })
    expect(await found?.state()).toBe('ready')
  })

  test('is null for an id of another job, and for an id that nobody has', async () => {
    const { hf } = alone()
    const one = hf.job({ name: 'one', run: () => undefined })
    const two = hf.job({ name: 'two', input: z.number(), run: () => undefined })
    const { id } = await one.enqueue()
    expect(await two.get(id)).toBeNull()
    expect(await one.get('00000000-0000-7000-8000-000000000000')).toBeNull()
  })

  test('gives a handle whose result can be awaited', async () => {
    const { hf, world } = alone()
    const gate = deferred()
    const job = hf.job({
      name: 'job',
      run: async () => {
        await gate.promise
        return 7
      },
    })
    const { id } = await job.enqueue()
    await hf.work()
    await world.advance(1_000)
    const result = (await job.get(id))!.result()
    gate.resolve()
    expect(await world.run(result)).toBe(7)
  })
})
