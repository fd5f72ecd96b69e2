import { describe, expect, test } from 'vitest'
import { alone, busy, deferred, refused, requestLost, VirtualWorld } from '../../test/support/virtual.ts'
import type { WorkerStatus } from './status.ts'

const QUEUES = { default: {}, mail: {}, reports: {} }

function named(rows: readonly WorkerStatus[]): string[] {
  return rows.map(({ name }) => name)
}

/** A process with two workers defined. */
function twoWorkers() {
  const one = alone({ queues: QUEUES })
  const { hf } = one
  const mail = hf.job({ name: 'send', queue: 'mail', run: () => undefined })
  const report = hf.job({ name: 'report', queue: 'reports', run: () => undefined })
  hf.workers.define('reports', { queues: ['reports'], concurrency: 1 })
  hf.workers.define('mail', { queues: ['mail'], concurrency: 10 })
  return { ...one, mail, report }
}

describe('workers that are defined', () => {
  test('start and stop together, and again', async () => {
    const { hf, world, told, mail, report } = twoWorkers()
    expect(await hf.workers.status()).toEqual([])
    await hf.workers.start()
    expect(told.of('worker.started').map(({ name, queues }) => [name, queues])).toEqual([
      ['reports', ['reports']],
      ['mail', ['mail']],
    ])
    expect(named(await hf.workers.status())).toEqual(['mail', 'reports'])
    const results = Promise.all([(await mail.enqueue()).result(), (await report.enqueue()).result()])
    await world.run(results)
    await world.run(hf.workers.stop())
    expect(await hf.workers.status()).toEqual([])
    expect(world.clock.nextDueMs()).toBeUndefined()
    await hf.workers.start()
    expect(named(await hf.workers.status())).toEqual(['mail', 'reports'])
  })

  test('start and stop one by one', async () => {
    const { hf, world } = twoWorkers()
    await hf.workers.start('mail')
    expect(named(await hf.workers.status())).toEqual(['mail'])
    await hf.workers.start('reports')
    await world.run(hf.workers.stop('mail', { drain: 0 }))
    expect(named(await hf.workers.status())).toEqual(['reports'])
  })

  test('are started once, however often and however soon that is asked for', async () => {
    const { hf, told } = twoWorkers()
    await Promise.all([hf.workers.start(), hf.workers.start('mail'), hf.workers.start()])
    await hf.workers.start()
    expect(told.of('worker.started')).toHaveLength(2)
  })

  test('that are about to stop end first, and are then started anew', async () => {
    const { hf, world, told, clock } = alone()
    const job = hf.job({ name: 'job', run: () => busy(clock, 5_000) })
    hf.workers.define('slow')
    await hf.workers.start()
    await job.enqueue()
    await world.until(() => told.of('job.started').length === 1)
    const stopping = hf.workers.stop()
    expect(await hf.workers.status()).toMatchObject([{ state: 'stopping', busy: 1, healthy: true }])
    await world.run(hf.workers.start())
    await stopping
    expect(told.all.map(({ name }) => name).filter((name) => /^worker|completed/.test(name))).toEqual([
      'worker.started',
      'worker.stopping',
      'job.completed',
      'worker.stopped',
      'worker.started',
    ])
  })

  test('are stopped by their signal, which makes nobody unhealthy', async () => {
    const { hf, world, told } = alone()
    hf.job({ name: 'job', run: () => undefined })
    const abort = new AbortController()
    hf.workers.define('mail', { signal: abort.signal })
    await hf.workers.start()
    abort.abort()
    await world.until(() => told.of('worker.stopped').length === 1)
    await world.advance(0)
    expect(await hf.workers.status()).toEqual([])
    expect(await hf.health.report()).toEqual({ healthy: true, workers: [], checks: [] })
  })

  test('take jobs that are defined between define() and start()', async () => {
    const { hf, world } = alone()
    hf.workers.define('later', {})
    const job = hf.job({ name: 'job', run: () => 'ran' })
    await hf.workers.start()
    expect(await world.run((await job.enqueue()).result())).toBe('ran')
  })

  test('let their jobs finish within the drain', async () => {
    const { hf, world, told, clock } = alone()
    const job = hf.job({ name: 'job', run: ({ signal }) => busy(clock, 10_000, signal) })
    hf.workers.define('slow')
    await hf.workers.start()
    await job.enqueue()
    await world.until(() => told.of('job.started').length === 1)
    await world.run(hf.workers.stop({ drain: '2s' }))
    expect(world.nowMs).toBeLessThan(3_000)
    expect(told.of('job.released')).toHaveLength(1)
  })

  test('stop with the holdfast()', async () => {
    const { hf, world } = twoWorkers()
    await hf.workers.start()
    await world.run(hf.close())
    expect(await world.store.notes.list('worker')).toEqual([])
    expect(world.clock.nextDueMs()).toBeUndefined()
    await expect(hf.workers.start()).rejects.toMatchObject({ code: 'HF_CLOSED' })
    await expect(hf.health.report()).rejects.toMatchObject({ code: 'HF_CLOSED' })
  })
})

describe('a start that fails half-way', () => {
  test('stops what it has started, leaves what ran before, and throws', async () => {
    const { hf, world, line, told } = alone({ queues: QUEUES, timeout: '1s' })
    hf.job({ name: 'job', run: () => undefined })
    for (const name of ['default', 'mail', 'reports'] as const) hf.workers.define(name, { queues: [name] })
    await hf.workers.start('default')
    let registers = 0
    line.fail(({ method }) => method === 'register' && ++registers > 1, refused)
    await expect(world.run(hf.workers.start())).rejects.toMatchObject({
      code: 'HF_STORE_UNREACHABLE',
      message: expect.stringContaining('Worker "reports": '),
    })
    expect(told.of('worker.stopped')).toHaveLength(1)
    expect(named(await hf.workers.status())).toEqual(['default'])
    const { healthy, workers } = await hf.health.report()
    expect(healthy).toBe(false)
    expect(workers.map(({ name, problems }) => [name, problems])).toEqual([
      ['default', []],
      ['mail', ['It was stopped because another worker could not be started.']],
      ['reports', [expect.stringContaining('It could not be started: ')]],
    ])
    line.mend()
    await hf.workers.start()
    expect(await hf.health.report()).toMatchObject({ healthy: true })
  })

  test('leaves no worker behind whose schedule could not be stored', async () => {
    const { hf, world, line, told } = alone({ timeout: '1s' })
    hf.job({ name: 'job', schedule: { every: '1m' }, run: () => undefined })
    line.fail('schedules.list', refused)
    hf.workers.define('mail')
    await expect(world.run(hf.workers.start())).rejects.toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
    expect(told.of('worker.stopped')).toHaveLength(1)
    expect(world.clock.nextDueMs()).toBeUndefined()
  })
})

describe('what cannot work', () => {
  test('is refused when it is defined or asked for', async () => {
    const { hf } = twoWorkers()
    const error = (code: string, message: string, hint?: string): unknown =>
      expect.objectContaining({ code, message, ...(hint === undefined ? {} : { hint }) })
    const define =
      (name: string, options: object): (() => void) =>
      () =>
        hf.workers.define(name, options)
    expect(define('mail', {})).toThrow(
      error('HF_DUPLICATE_WORKER', 'There is already a worker named "mail".'),
    )
    expect(define('two words', {})).toThrow(
      error(
        'HF_BAD_OPTION',
        '`workers.define(name)` is "two words"; it must be a name of 1 to 200 letters, digits and _ . : / @ - without spaces.',
      ),
    )
    expect(define('a', { lease: 'soon' })).toThrow(
      error('HF_BAD_OPTION', 'Worker "a": `work().lease` is "soon"; it must be a duration from 100ms.'),
    )
    expect(define('b', { queues: ['post'] })).toThrow(
      error('HF_UNKNOWN_QUEUE', 'Worker "b": There is no queue named "post".'),
    )
    expect(define('c', { health: { errorRate: 10 } })).toThrow(
      error(
        'HF_BAD_OPTION',
        'Worker "c": `work().health.errorRate` is 10; it must be a number from 0 to 1.',
        'Use a number from 0 to 1.',
      ),
    )
    await expect(hf.workers.start('post')).rejects.toEqual(
      error(
        'HF_UNKNOWN_WORKER',
        'There is no worker named "post".',
        'Define it with hf.workers.define(), or use one of: reports, mail.',
      ),
    )
    await expect(hf.workers.stop('post')).rejects.toMatchObject({ code: 'HF_UNKNOWN_WORKER' })
    await expect(alone().hf.workers.start()).rejects.toMatchObject({ code: 'HF_UNKNOWN_WORKER' })
    await expect(hf.work({ name: '' })).rejects.toMatchObject({ code: 'HF_BAD_OPTION' })
  })

  test.each([
    [{ every: '10ms' }, '`holdfast().health.every` is "10ms"; it must be a duration from 1s to 1h.'],
    [{ every: 'often' }, '`holdfast().health.every` is "often"; it must be a duration from 1s to 1h.'],
    [{ idle: 0 }, '`holdfast().health.idle` is 0; it must be a duration above 0.'],
    [{ errorRate: -0.1 }, '`holdfast().health.errorRate` is -0.1; it must be a number from 0 to 1.'],
    [{ errorRate: Number.NaN }, '`holdfast().health.errorRate` is NaN; it must be a number from 0 to 1.'],
    [{ queueSize: 1.5 }, '`holdfast().health.queueSize` is 1.5; it must be a whole number from 0.'],
    [{ eery: 1 }, 'Unknown option `holdfast().health.eery`.'],
  ])('is refused as an option of holdfast(): %o', (health, message) => {
    expect(() => alone({ health: health as object })).toThrow(
      expect.objectContaining({ code: 'HF_BAD_OPTION', message }),
    )
  })
})

describe('the status', () => {
  test('lists the workers of all processes, seen from any', async () => {
    const world = new VirtualWorld()
    const start = async (name: string, queues: readonly ('default' | 'mail' | 'reports')[]) => {
      const process = world.process({ queues: QUEUES })
      process.hf.job({ name: 'job', run: () => undefined })
      const worker = await process.hf.work({ name, queues, concurrency: 3 })
      await world.advance(10)
      return { ...process, worker }
    }
    const one = await start('mail', ['mail'])
    const two = await start('reports', ['reports', 'default'])
    const { hf } = world.process({ queues: QUEUES })
    const job = hf.contract({ name: 'job' })
    await hf.pause('mail')
    await job.enqueueMany([undefined, undefined], { queue: 'mail' })
    await world.advance(60_000)
    const rows = await hf.workers.status()
    expect(rows).toMatchObject([
      { name: 'mail', id: one.worker.id, queues: ['mail'], queueSize: 2, slots: 3, busy: 0 },
      { name: 'reports', id: two.worker.id, queues: ['reports', 'default'], queueSize: 0 },
    ])
    expect(rows.map(({ seenAt }) => world.clock.now() - seenAt.getTime())).toEqual([20, 10])
    expect(await one.hf.workers.status()).toMatchObject([{ uptimeMs: 60_020 }, { name: 'reports' }])
    await world.run(one.worker.stop())
    expect(named(await hf.workers.status())).toEqual(['reports'])
  })

  test('forgets the workers of a process that vanished after three rounds', async () => {
    const world = new VirtualWorld()
    const dying = world.process()
    dying.hf.job({ name: 'job', run: () => undefined })
    await dying.hf.work()
    const { hf } = world.process()
    await world.advance(75_000)
    dying.kill()
    await world.advance(70_000)
    expect(await hf.workers.status()).toHaveLength(1)
    await world.advance(10_000)
    expect(await hf.workers.status()).toEqual([])
  })

  test('counts what the worker has done', async () => {
    const { hf, world, clock, told } = alone({ logger: false })
    let fails = 0
    const job = hf.job({
      name: 'job',
      retry: { delay: '1s', jitter: 0, backoff: 'fixed' },
      async run() {
        await busy(clock, 200)
        if (fails-- > 0) throw new Error('not now')
      },
    })
    await hf.work({ name: 'mail', concurrency: 1 })
    const startedAt = new Date(clock.now())
    expect(await hf.workers.status()).toMatchObject([
      { processed: 0, errors: 0, rate: 0, meanMs: null, lastProcessedAt: null, startedAt, uptimeMs: 0 },
    ])
    fails = 2
    await job.enqueueMany(Array.from({ length: 10 }))
    await world.until(() => told.of('job.completed').length === 10)
    const last = clock.now()
    await world.advance(30_000)
    const [row] = await hf.workers.status()
    expect(row).toMatchObject({
      processed: 12,
      errors: 2,
      lastProcessedAt: new Date(last),
      startedAt,
      pid: process.pid,
      state: 'running',
    })
    expect(row?.meanMs).toBeCloseTo(200)
    expect(row?.rate).toBeCloseTo(12_000 / (row?.uptimeMs ?? 0))
    expect(row?.memoryBytes).toBeGreaterThan(1_000_000)
    await world.advance(90_000)
    expect(await hf.workers.status()).toMatchObject([{ rate: 0, processed: 12 }])
  })

  test('goes on counting under the new id of a worker that lost its lease', async () => {
    const { hf, world, freeze, thaw, told } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    const other = world.process()
    other.hf.job({ name: 'job', run: () => undefined })
    const worker = await hf.work({ name: 'frozen' })
    await job.enqueue()
    await world.until(() => told.of('job.completed').length === 1)
    await other.hf.work({ name: 'other' })
    freeze()
    await world.advance(80_000)
    thaw()
    await world.until(() => told.of('worker.reregistered').length === 1)
    await world.advance(30_000)
    const rows = await other.hf.workers.status()
    expect(rows).toMatchObject([{ name: 'frozen', id: worker.id, processed: 1 }, { name: 'other' }])
  })

  test('of a worker that gets nothing done for want of leases counts nothing', async () => {
    const { hf, world, line, told } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    await hf.work()
    line.fail('cycle', requestLost)
    await job.enqueue()
    await world.advance(5_000)
    expect(told.of('job.completed')).toEqual([])
    line.mend()
    await world.until(() => told.of('job.completed').length === 1)
    expect(await hf.workers.status()).toMatchObject([{ processed: 1 }])
  })
})

describe('a note that cannot be written', () => {
  test.each([
    ['is refused', refused],
    ['gets no answer', requestLost],
  ])('because it %s disturbs neither start, work nor stop', async (_, fault) => {
    const { hf, world, line, told } = alone()
    const gate = deferred()
    const job = hf.job({ name: 'job', run: () => gate.promise })
    line.fail('notes.put', fault)
    const worker = await hf.work()
    expect(world.nowMs).toBe(0)
    const { id } = await job.enqueue()
    await world.advance(120_000)
    gate.resolve()
    await world.advance(1_000)
    expect(await world.record(id)).toMatchObject({ state: 'completed' })
    expect(worker.health()).toMatchObject({ healthy: true })
    const beganMs = world.nowMs
    await world.run(worker.stop())
    expect(world.nowMs - beganMs).toBeLessThanOrEqual(4_000)
    expect(told.of('duty.failed')).toEqual([])
  })
})
