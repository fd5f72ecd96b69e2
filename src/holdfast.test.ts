import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Hub } from './hub.ts'
import type { Events } from './job/events.ts'
import { alone, busy, deferred, letPromisesRun } from '../test/support/virtual.ts'

describe('pausing a queue', () => {
  test('lets no job of it start once it is answered, and running ones finish', async () => {
    const { hf, world, told, clock } = alone({ queues: { default: {}, mail: {} } })
    const job = hf.job({ name: 'job', input: z.number(), run: () => busy(clock, 100) })
    await hf.work({ concurrency: 1 })
    await job.enqueueMany([1, 2, 3], { queue: 'mail' })
    await world.advance(50)
    await hf.pause('mail')
    await world.advance(60_000)
    expect(told.of('job.completed')).toHaveLength(1)
    expect(told.of('queue.paused')).toEqual([{ queue: 'mail' }])
    await job.enqueue(4)
    await world.advance(1_000)
    expect(told.of('job.completed').map((event) => event.queue)).toEqual(['mail', 'default'])
  })

  test('ends with resume, which wakes the workers', async () => {
    const { hf, world, told } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    await hf.work({ poll: '1h' })
    await hf.pause('default')
    await job.enqueue()
    await world.advance(10_000)
    expect(told.of('job.started')).toEqual([])
    await hf.resume('default')
    await world.advance()
    expect(told.of('job.started')).toHaveLength(1)
    expect(told.of('queue.resumed')).toEqual([{ queue: 'default' }])
  })

  test('is known to every process, and to those who ask', async () => {
    const { hf, world } = alone()
    await hf.job({ name: 'job', run: () => undefined }).enqueue()
    await hf.pause('default')
    expect(await world.process().hf.queues()).toMatchObject([
      { queue: 'default', paused: true, counts: { ready: 1, running: 0 }, oldestReadyAt: world.clock.now() },
    ])
  })

  test('is refused for a queue that nobody declared', async () => {
    const { hf } = alone()
    await expect(hf.pause('mial' as 'default')).rejects.toMatchObject({ code: 'HF_UNKNOWN_QUEUE' })
    await expect(hf.resume('mial' as 'default')).rejects.toMatchObject({ code: 'HF_UNKNOWN_QUEUE' })
  })
})

describe('queues()', () => {
  test('counts what waits, runs and has ended', async () => {
    const { hf, world, told } = alone({ queues: { default: {}, mail: {} } })
    const gate = deferred()
    const job = hf.job({
      name: 'job',
      input: z.boolean(),
      run: ({ input }) => (input ? gate.promise : undefined),
    })
    await job.enqueue(true)
    await job.enqueue(false)
    await job.enqueue(false, { in: '1h' })
    await job.enqueue(false, { queue: 'mail' })
    await hf.work({ queues: ['default'] })
    await world.until(() => told.of('job.completed').length === 1)
    const queues = await hf.queues()
    expect(queues.map(({ queue }) => queue)).toEqual(['default', 'mail'])
    expect(queues[0]?.counts).toMatchObject({ running: 1, completed: 1, scheduled: 1, ready: 0 })
    expect(queues[1]?.counts).toMatchObject({ ready: 1 })
    gate.resolve()
  })
})

describe('listeners', () => {
  test('hear their events until they are taken off', async () => {
    const { hf } = alone()
    const seen: Events['job.enqueued'][] = []
    const job = hf.job({ name: 'job', run: () => undefined })
    const off = hf.on('job.enqueued', (event) => void seen.push(event))
    await job.enqueue()
    off()
    off()
    await job.enqueue()
    expect(seen).toHaveLength(1)
  })

  test('that throw or reject disturb neither the job nor each other, and are told of', async () => {
    const { hf, world, told } = alone()
    let heard = 0
    hf.on('job.completed', () => {
      throw new Error('thrown')
    })
    hf.on('job.completed', () => Promise.reject(new Error('rejected')))
    hf.on('job.completed', () => void heard++)
    hf.on('listener.failed', () => {
      throw new Error('even this one')
    })
    const handle = await hf.job({ name: 'job', run: () => 'fine' }).enqueue()
    await hf.work()
    expect(await world.run(handle.result())).toBe('fine')
    await letPromisesRun()
    expect(heard).toBe(1)
    expect(told.of('listener.failed').map(({ event, error }) => [event, error.message])).toEqual([
      ['job.completed', 'thrown'],
      ['job.completed', 'rejected'],
    ])
  })

  test('hear the same through every object that use() made', async () => {
    const { hf } = alone()
    const seen: string[] = []
    const derived = hf.use(({ next }) => next({ extra: 1 }))
    derived.on('job.enqueued', (event) => void seen.push(event.job))
    await hf.job({ name: 'on-hf', run: () => undefined }).enqueue()
    await derived.job({ name: 'on-derived', run: () => undefined }).enqueue()
    expect(seen).toEqual(['on-hf', 'on-derived'])
    expect(Hub.of(derived)).toBe(Hub.of(hf))
  })
})

describe('holdfast()', () => {
  test('hands its logger each event, and no input or result', async () => {
    const lines: [object, string][] = []
    const log = (fields: object, message: string): void => void lines.push([fields, message])
    const { hf, world, told } = alone({ logger: { debug: log, info: log, warn: log, error: log } })
    const job = hf.job({ name: 'job', input: z.string(), run: () => 'the result' })
    await job.enqueue('the input')
    await hf.work()
    await world.until(() => told.of('job.completed').length === 1)
    expect(lines.map(([fields]) => (fields as { event: string }).event)).toContain('job.completed')
    expect(JSON.stringify(lines)).not.toMatch(/the input|the result/)
  })

  test('is not what Hub.of() is asked about something else', () => {
    expect(() => Hub.of({})).toThrow(expect.objectContaining({ code: 'HF_BAD_OPTION' }))
  })
})
