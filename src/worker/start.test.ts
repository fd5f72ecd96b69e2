import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { alone, letPromisesRun, refused, requestLost, thrownBy } from '../../test/support/virtual.ts'
import type { AnyJob } from '../core/job-mark.ts'
import type { WorkOptions } from './options.ts'

describe('starting a worker', () => {
  test.each([
    ['register', refused],
    ['register', requestLost],
    ['subscribe', refused],
    ['subscribe', requestLost],
    ['open', refused],
  ] as const)(
    'fails with a clear error where the store cannot %s, and leaves nothing behind',
    async (method, fault) => {
      const { hf, world, line } = alone()
      hf.job({ name: 'job', run: () => undefined })
      line.fail(method, fault)
      const error = await world.run(thrownBy(hf.work()))
      expect(error).toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
      expect(world.nowMs).toBeLessThanOrEqual(20_000)
      expect(world.clock.nextDueMs()).toBeUndefined()
      line.mend()
      await hf.work()
    },
  )

  test('outlasts a short outage', async () => {
    const { hf, world, line } = alone()
    hf.job({ name: 'job', run: () => undefined })
    line.fail('register', refused, 3)
    const worker = await world.run(hf.work())
    expect(worker.health()).toMatchObject({ healthy: true, running: 0 })
  })

  test('that a close overtakes ends in HF_CLOSED, with no worker left in the store', async () => {
    const { hf, world, line } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    await job.enqueue()
    const gate = line.hold('register', 'reply')
    const starting = thrownBy(hf.work())
    await letPromisesRun()
    const closing = hf.close()
    await world.advance(1_000)
    gate.open()
    await world.run(closing)
    expect(await starting).toMatchObject({ code: 'HF_CLOSED' })
    expect(world.clock.nextDueMs()).toBeUndefined()
    expect(line.calls.map(({ method }) => method)).toContain('retire')
    expect(await world.counts()).toEqual({ ready: 1 })
  })

  test('that a close overtakes while it declares its schedules leaves no upkeep behind', async () => {
    const { hf, world, line } = alone()
    hf.job({ name: 'job', schedule: { every: '1h' }, run: () => undefined })
    const gate = line.hold('schedules.put', 'reply')
    const starting = thrownBy(hf.work())
    await letPromisesRun()
    const closing = hf.close()
    await world.advance(1_000)
    gate.open()
    await world.run(closing)
    expect(await starting).toMatchObject({ code: 'HF_CLOSED' })
    await world.advance(60_000)
    expect(world.clock.nextDueMs()).toBeUndefined()
    expect(line.callsTo('upkeep.lead')).toEqual([])
  })

  test('needs a job to run', async () => {
    const { hf, line } = alone()
    await expect(hf.work()).rejects.toMatchObject({ code: 'HF_NO_JOBS' })
    await expect(hf.work({ jobs: [] })).rejects.toMatchObject({ code: 'HF_NO_JOBS' })
    expect(line.calls).toEqual([])
  })

  test('refuses a job of another holdfast(), whatever its name', async () => {
    const { hf, world } = alone()
    hf.job({ name: 'same', run: () => undefined })
    const other = world.process().hf
    const stranger = other.job({ name: 'stranger', run: () => undefined })
    const namesake = other.job({ name: 'same', run: () => undefined })
    await expect(hf.work({ jobs: [stranger] })).rejects.toMatchObject({ code: 'HF_UNKNOWN_JOB' })
    await expect(hf.work({ jobs: [namesake] })).rejects.toMatchObject({ code: 'HF_UNKNOWN_JOB' })
  })

  test('runs only the jobs that it was given', async () => {
    const { hf, world, told } = alone()
    const ran: string[] = []
    const one = hf.job({ name: 'one', input: z.number(), run: () => void ran.push('one') })
    const two = hf.job({ name: 'two', run: () => void ran.push('two') })
    await one.enqueue(1)
    await two.enqueue()
    await hf.work({ jobs: [one] })
    await world.until(() => told.of('job.failed').length === 1)
    expect(ran).toEqual(['one'])
    expect(told.of('job.failed')[0]).toMatchObject({ job: 'two', error: { code: 'HF_UNKNOWN_JOB' } })
  })

  test.each<[string, WorkOptions<'default'>, string]>([
    ['an unknown option', { concurency: 5 } as object, 'HF_BAD_OPTION'],
    ['no slots', { concurrency: 0 }, 'HF_BAD_OPTION'],
    ['half a slot', { concurrency: 1.5 }, 'HF_BAD_OPTION'],
    ['a batch beyond what a store takes', { batchSize: 1_001 }, 'HF_BAD_OPTION'],
    ['a poll of zero', { poll: 0 }, 'HF_BAD_OPTION'],
    ['a lease that no answer is quick enough for', { lease: '50ms' }, 'HF_BAD_OPTION'],
    ['a grace that is no duration', { grace: 'long' as '1s' }, 'HF_BAD_OPTION'],
    ['no queues', { queues: [] }, 'HF_BAD_OPTION'],
    ['a queue that nobody declared', { queues: ['mial' as 'default'] }, 'HF_UNKNOWN_QUEUE'],
    ['a weight of zero', { queues: { default: 0 } }, 'HF_BAD_OPTION'],
  ])('refuses %s before it touches the store', async (_, options, code) => {
    const { hf, line } = alone()
    const job: AnyJob = hf.job({ name: 'job', run: () => undefined })
    await expect(hf.work({ jobs: [job], ...options })).rejects.toMatchObject({ code })
    expect(line.calls).toEqual([])
  })
})
