import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { ownerOf } from '../core/job-mark.ts'
import { isJob } from './job.ts'
import { alone, VirtualWorld } from '../../test/support/virtual.ts'

const definition = {
  name: 'render',
  input: z.object({ url: z.string() }),
  output: z.object({ pages: z.number() }),
} as const

describe('a contract', () => {
  test('is enqueued by a process that has no handler, and run by one that has', async () => {
    const world = new VirtualWorld()
    const web = world.process()
    const back = world.process()
    const handle = await web.hf.contract(definition).enqueue({ url: 'a' })
    back.hf.contract(definition).implement(({ input }) => ({ pages: input.url.length }))
    await back.hf.work()
    expect(await world.run(handle.result())).toEqual({ pages: 1 })
  })

  test('is a job like any other once it is implemented', async () => {
    const { hf, world } = alone()
    const contract = hf.contract(definition)
    const job = contract.implement(() => ({ pages: 2 }))
    expect(job.name).toBe('render')
    await hf.work({ jobs: [job] })
    const [one, two] = await Promise.all([job.enqueue({ url: 'a' }), contract.enqueue({ url: 'b' })])
    expect(await world.run(Promise.all([one.result(), two.result()]))).toEqual([{ pages: 2 }, { pages: 2 }])
  })

  test('is implemented once', () => {
    const { hf } = alone()
    const contract = hf.contract(definition)
    contract.implement(() => ({ pages: 1 }))
    expect(() => contract.implement(() => ({ pages: 2 }))).toThrow(
      expect.objectContaining({ code: 'HF_DUPLICATE_JOB' }),
    )
  })

  test('needs a function to be implemented', () => {
    const { hf } = alone()
    const contract = hf.contract(definition)
    expect(() => contract.implement(undefined as never)).toThrow(
      expect.objectContaining({ code: 'HF_BAD_JOB' }),
    )
    expect(() => contract.implement('run' as never)).toThrow(expect.objectContaining({ code: 'HF_BAD_JOB' }))
  })

  test('without its implementation is refused by a worker that is to run it', async () => {
    const { hf } = alone()
    const contract = hf.contract(definition)
    await expect(hf.work({ jobs: [contract] })).rejects.toMatchObject({ code: 'HF_NO_HANDLER' })
    await expect(hf.work()).rejects.toMatchObject({ code: 'HF_NO_JOBS' })
  })

  test('holds its implementation to the output that it promised', async () => {
    const { hf, world, told } = alone()
    const contract = hf.contract(definition)
    contract.implement(() => ({ pages: 'three' }) as unknown as { pages: number })
    await contract.enqueue({ url: 'a' })
    await hf.work()
    await world.until(() => told.of('job.failed').length === 1)
    expect(told.of('job.failed')[0]).toMatchObject({
      final: true,
      error: {
        code: 'HF_INVALID_OUTPUT',
        message: expect.stringMatching(/"render" returned what its contract does not allow at pages/),
      },
    })
  })

  test('judges with an asynchronous output schema as well, and lets a snooze pass', async () => {
    const { hf, world } = alone()
    const output = z.number().refine((n) => Promise.resolve(n > 1))
    const contract = hf.contract({ name: 'async', output })
    contract.implement(({ job, snooze }) =>
      job.enqueuedAt.getTime() === world.clock.now() ? snooze('1m') : 2,
    )
    const handle = await contract.enqueue()
    await hf.work()
    expect(await world.run(handle.result())).toBe(2)
    expect((await world.record(handle.id)).attempt).toBe(1)
  })
})

describe('a job definition', () => {
  test('has a name of its own', () => {
    const { hf } = alone()
    hf.job({ name: 'mail', run: () => undefined })
    const again = { name: 'mail', run: (): void => undefined }
    expect(() => hf.job(again)).toThrow(expect.objectContaining({ code: 'HF_DUPLICATE_JOB' }))
    expect(() => hf.contract({ name: 'mail' })).toThrow(expect.objectContaining({ code: 'HF_DUPLICATE_JOB' }))
    expect(() => hf.use(({ next }) => next()).job(again)).toThrow(
      expect.objectContaining({ code: 'HF_DUPLICATE_JOB' }),
    )
  })

  test.each([
    ['a name with spaces', { name: 'send mail' }],
    ['an unknown option', { name: 'a', retires: 3 }],
    ['an input that is no schema', { name: 'a', input: { to: 'string' } }],
    ['a run that is no function', { name: 'a', run: 'later' }],
    ['nothing at all', undefined],
  ])('is refused with %s', (_, bad) => {
    const { hf } = alone()
    expect(() => hf.job(bad as never)).toThrow(expect.objectContaining({ code: 'HF_BAD_JOB' }))
  })

  test('is refused with a queue that nobody declared, and takes the first where none is named default', () => {
    const { hf } = alone({ queues: { mail: {}, reports: {} } })
    expect(() => hf.job({ name: 'a', queue: 'mial' as 'mail', run: () => undefined })).toThrow(
      expect.objectContaining({ code: 'HF_UNKNOWN_QUEUE', message: expect.stringMatching(/"a".*"mial"/) }),
    )
    expect(hf.job({ name: 'b', run: () => undefined }).name).toBe('b')
  })

  test('gives a frozen object that is known as a job of its holdfast()', () => {
    const { hf } = alone()
    const job = hf.job({ name: 'mail', run: () => undefined })
    expect(Object.isFrozen(job)).toBe(true)
    expect(isJob(job)).toBe(true)
    expect(isJob({ name: 'mail' })).toBe(false)
    expect(ownerOf(job)).toBeDefined()
    expect(ownerOf({})).toBeUndefined()
  })
})
