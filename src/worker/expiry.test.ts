import { describe, expect, test } from 'vitest'
import { DependencyDown } from '../errors.ts'
import { alone, thrownBy } from '../../test/support/virtual.ts'

describe('a job with expiresIn', () => {
  test('runs where it is started in time', async () => {
    const { hf, world } = alone()
    const handle = await hf.job({ name: 'code', run: () => 'sent' }).enqueue(undefined, { expiresIn: '5m' })
    await world.advance(299_000)
    await hf.work()
    expect(await world.run(handle.result())).toBe('sent')
  })

  test('is cancelled instead of run where it is too late', async () => {
    const { hf, world, told } = alone()
    let ran = 0
    const job = hf.job({ name: 'code', run: () => void ran++ })
    const handle = await job.enqueue(undefined, { expiresIn: '5m' })
    await job.enqueue()
    await world.advance(301_000)
    await hf.work()
    await world.until(() => told.of('job.completed').length === 1)
    expect(await thrownBy(world.run(handle.result()))).toMatchObject({
      code: 'HF_JOB_CANCELLED',
      message: expect.stringContaining('expired'),
    })
    expect(ran).toBe(1)
    expect(told.of('job.cancelled')).toMatchObject([{ id: handle.id, reason: 'expired', durationMs: 0 }])
    expect(await handle.attempts()).toEqual([])
  })

  test('counts from when it is due, not from when it was enqueued', async () => {
    const { hf, world } = alone()
    const job = hf.job({ name: 'later', run: () => 'sent' })
    const delayed = await job.enqueue(undefined, { in: '1h', expiresIn: '5m' })
    const fixed = await job.enqueue(undefined, {
      at: new Date(world.clock.now() + 3_600_000),
      expiresIn: '5m',
    })
    await world.advance(3_600_000 + 200_000)
    await hf.work()
    expect(await world.run(Promise.all([delayed.result(), fixed.result()]))).toEqual(['sent', 'sent'])
  })

  test('is not retried beyond its time: the failure is final', async () => {
    const { hf, world, told } = alone()
    const job = hf.job({
      name: 'flaky',
      retry: { attempts: 10, delay: '2m', backoff: 'fixed', jitter: false },
      run: () => Promise.reject(new Error('down')),
    })
    const { id } = await job.enqueue(undefined, { expiresIn: '5m' })
    await hf.work()
    await world.until(() => told.of('job.failed').some(({ final }) => final))
    expect(told.of('job.failed').map(({ attempt, final }) => [attempt, final])).toEqual([
      [1, false],
      [2, false],
      [3, true],
    ])
    expect(await world.record(id)).toMatchObject({ state: 'dead', error: { message: 'down' } })
  })

  test('whose retry comes too late stays a dead letter', async () => {
    const { hf, world, told } = alone()
    const job = hf.job({
      name: 'flaky',
      retry: { delay: '1m', backoff: 'fixed', jitter: false },
      run: () => Promise.reject(new Error('down')),
    })
    const { id } = await job.enqueue(undefined, { expiresIn: '5m' })
    const worker = await hf.work()
    await world.until(() => told.of('job.failed').length === 1)
    await world.run(worker.stop())
    await world.advance(600_000)
    await hf.work()
    await world.until(() => told.of('job.failed').some(({ final }) => final))
    expect(await world.record(id)).toMatchObject({ state: 'dead', error: { code: 'HF_EXPIRED' } })
  })

  test('is not parked beyond its time either', async () => {
    const { hf, world, told } = alone()
    const job = hf.job({ name: 'parked', run: () => Promise.reject(new DependencyDown('smtp')) })
    const { id } = await job.enqueue(undefined, { expiresIn: '5m' })
    await hf.work()
    await world.until(() => told.of('job.failed').length === 1)
    expect(world.nowMs).toBeLessThan(301_000)
    expect(await world.record(id)).toMatchObject({ state: 'dead', error: { kind: 'dependency_down' } })
  })

  test('that snoozes of its own accord is asked for anew', async () => {
    const { hf, world } = alone()
    let runs = 0
    const job = hf.job({ name: 'later', run: ({ snooze }) => (++runs === 1 ? snooze('1h') : 'done') })
    const handle = await job.enqueue(undefined, { expiresIn: '5m' })
    await hf.work()
    expect(await world.run(handle.result({ timeout: '2h' }), 7_200_000)).toBe('done')
  })

  test('is too late as well where it waited for its company', async () => {
    const { hf, world, told } = alone()
    const job = hf.batchJob({ name: 'slow', batch: { size: 2, fill: 2, wait: '1m' }, run: () => undefined })
    await job.enqueue(undefined, { expiresIn: '5s' })
    await hf.work()
    await world.until(() => told.of('job.cancelled').length === 1)
    expect(told.of('job.completed')).toEqual([])
  })

  test('gets its attempt when it is replayed long after', async () => {
    const { hf, world, told } = alone()
    let works = false
    const job = hf.job({
      name: 'flaky',
      retry: { attempts: 1 },
      run: () => (works ? 'at last' : Promise.reject(new Error('down'))),
    })
    const handle = await job.enqueue(undefined, { expiresIn: '5m' })
    await hf.work()
    await world.until(() => told.of('job.failed').length === 1)
    await world.advance(3_600_000)
    works = true
    await hf.deadLetters.replay(handle.id)
    expect(await world.run(handle.result())).toBe('at last')
  })

  test('is a dead letter again where its replay fails, after one attempt', async () => {
    const { hf, world, told } = alone()
    const job = hf.job({ name: 'down', retry: { attempts: 3 }, run: () => Promise.reject(new Error('down')) })
    const { id } = await job.enqueue(undefined, { expiresIn: '1s' })
    const finals = (): number => told.of('job.failed').filter(({ final }) => final).length
    await hf.work()
    await world.until(() => finals() === 1)
    await world.advance(3_600_000)
    await hf.deadLetters.replay(id)
    await world.until(() => finals() === 2)
    expect(await world.record(id)).toMatchObject({ state: 'dead', error: { message: 'down' } })
  })

  test('is not handed out by hand either', async () => {
    const { hf, world, told } = alone()
    const queue = hf.queue('default')
    await queue.send('old', { expiresIn: '1s' })
    await queue.send('new')
    await world.advance(2_000)
    const [message, ...more] = await world.run(queue.get({ limit: 5 }))
    expect(message?.payload).toBe('new')
    expect(more).toEqual([])
    await message?.ack()
    await world.until(() => told.of('job.cancelled').length === 1)
  })

  test('refuses what is no time', async () => {
    const { hf } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    expect(await thrownBy(job.enqueue(undefined, { expiresIn: '0s' }))).toMatchObject({
      code: 'HF_BAD_OPTION',
    })
  })
})
