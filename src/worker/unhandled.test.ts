/** Node tells of unhandled rejections on the real loop: these tests let it turn, and move vitest's own listeners aside. */
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { alone, deferred, letPromisesRun } from '../../test/support/virtual.ts'

beforeEach(() => {
  const others = process.listeners('unhandledRejection')
  process.removeAllListeners('unhandledRejection')
  onTestFinished(() => {
    for (const listener of others) process.on('unhandledRejection', listener)
  })
})

describe('a promise that a handler leaves behind', () => {
  test('and that is rejected while the handler runs fails that job alone', async () => {
    const { hf, world, told } = alone()
    const gate = deferred()
    const job = hf.job({
      name: 'job',
      input: z.string(),
      retry: { attempts: 1 },
      async run({ input }) {
        if (input === 'careless') void Promise.reject(new Error('left behind'))
        await gate.promise
        return input
      },
    })
    const careless = await job.enqueue('careless')
    const careful = await job.enqueue('careful')
    await hf.work()
    await world.advance(10)
    await letPromisesRun()
    gate.resolve()
    await world.until(() => told.of('job.failed').length + told.of('job.completed').length === 2)
    expect(told.of('job.failed')).toMatchObject([{ id: careless.id, error: { message: 'left behind' } }])
    expect(told.of('job.completed')).toMatchObject([{ id: careful.id }])
  })

  test('is blamed on its job through timers and other promises', async () => {
    const { hf, world, told } = alone()
    const gate = deferred()
    const job = hf.job({
      name: 'job',
      retry: { attempts: 1 },
      async run() {
        void letPromisesRun().then(() => Promise.reject(new Error('from a timer')))
        await gate.promise
      },
    })
    await job.enqueue()
    await hf.work()
    await world.advance(10)
    await letPromisesRun()
    await letPromisesRun()
    gate.resolve()
    await world.until(() => told.of('job.failed').length === 1)
    expect(told.of('job.failed')[0]?.error.message).toBe('from a timer')
  })

  test('and that is rejected after the handler has returned is told, and changes nothing', async () => {
    const { hf, world, told } = alone()
    const late = deferred()
    const job = hf.job({
      name: 'job',
      run: () => void late.promise.then(() => Promise.reject(new Error('late'))),
    })
    const handle = await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.completed').length === 1)
    late.resolve()
    await letPromisesRun()
    await letPromisesRun()
    expect(told.of('job.unhandled')).toMatchObject([{ id: handle.id, error: { message: 'late' } }])
    expect(await handle.state()).toBe('completed')
  })
})

describe('the listener for them', () => {
  test('is one for all workers, and is gone with the last of them', async () => {
    const { hf, world } = alone()
    hf.job({ name: 'job', run: () => undefined })
    const one = await hf.work()
    const two = await hf.work()
    expect(process.listenerCount('unhandledRejection')).toBe(1)
    await world.run(one.stop())
    expect(process.listenerCount('unhandledRejection')).toBe(1)
    await world.run(two.stop())
    expect(process.listenerCount('unhandledRejection')).toBe(0)
  })

  test('leaves to others what comes from no job', async () => {
    const { hf, told } = alone()
    hf.job({ name: 'job', run: () => undefined })
    await hf.work()
    const seen: unknown[] = []
    const listener = (reason: unknown): void => void seen.push(reason)
    process.on('unhandledRejection', listener)
    void Promise.reject(new Error('from nowhere'))
    await letPromisesRun()
    process.off('unhandledRejection', listener)
    expect(seen).toMatchObject([{ message: 'from nowhere' }])
    expect(told.of('job.unhandled')).toEqual([])
  })
})
