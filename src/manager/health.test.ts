import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { alone, busy, deferred, refused, VirtualWorld } from '../../test/support/virtual.ts'
import { whyAborted } from '../errors.ts'

const MINUTE_MS = 60_000
const QUIET = { retry: { attempts: 1 } }

describe('a worker', () => {
  test('is healthy while it has nothing to do, for however long', async () => {
    const { hf, world, told } = alone()
    hf.job({ name: 'job', run: () => undefined })
    const worker = await hf.work({ name: 'mail' })
    await world.advance(3 * 60 * MINUTE_MS)
    expect(await hf.health.report()).toEqual({
      healthy: true,
      workers: [{ name: 'mail', id: worker.id, healthy: true, problems: [] }],
      checks: [],
    })
    expect(told.of('health.changed')).toEqual([])
  })

  test('that the store does not answer is unhealthy until it does, which is told once each', async () => {
    const { hf, world, line, told } = alone()
    hf.job({ name: 'job', run: () => undefined })
    const worker = await hf.work({ name: 'mail' })
    line.breakDown(refused)
    await world.advance(60_000)
    const { workers, healthy } = await world.run(hf.health.report())
    expect(healthy).toBe(false)
    expect(workers[0]?.problems).toEqual([expect.stringMatching(/^The store has not answered it for /)])
    line.mend()
    await world.advance(60_000)
    expect(await hf.health.report()).toMatchObject({ healthy: true })
    const about = { kind: 'worker', name: 'mail' }
    expect(told.of('health.changed')).toEqual([
      { ...about, worker: expect.any(String), healthy: false, problems: [expect.any(String)] },
      { ...about, worker: worker.id, healthy: true, problems: [] },
    ])
  })

  test('is inactive where jobs have waited for it for half an hour', async () => {
    const { hf, world, clock, told } = alone()
    const job = hf.job({
      name: 'job',
      timeout: '2h',
      run: ({ signal }) => busy(clock, 50 * MINUTE_MS, signal),
    })
    await hf.work({ concurrency: 1 })
    await job.enqueueMany([undefined, undefined])
    await world.advance(29 * MINUTE_MS)
    expect(await hf.health.report()).toMatchObject({ healthy: true })
    await world.advance(2 * MINUTE_MS)
    expect((await hf.health.report()).workers[0]?.problems).toEqual([
      'It has finished nothing for 31m, while a job has been waiting for 31m; 1 of 1 slots are busy.',
    ])
    await world.until(() => told.of('job.completed').length === 1)
    await world.advance(30_000)
    expect(told.of('health.changed').map(({ healthy }) => healthy)).toEqual([false, true])
  })

  test('is not inactive because its queue is paused, nor where its own limit is higher', async () => {
    const { hf, world, clock } = alone({ queues: { default: {}, long: {} } })
    const job = hf.job({
      name: 'job',
      timeout: '2h',
      run: ({ signal }) => busy(clock, 50 * MINUTE_MS, signal),
    })
    await hf.work({ queues: ['default'], concurrency: 1 })
    await hf.work({ queues: ['long'], concurrency: 1, health: { idle: '1h' } })
    await hf.pause('default')
    await job.enqueue()
    await job.enqueueMany([undefined, undefined], { queue: 'long' })
    await world.advance(45 * MINUTE_MS)
    expect(await hf.health.report()).toMatchObject({ healthy: true })
  })

  test('is failing where more than a tenth of its attempts fail, and recovers', async () => {
    const { hf, world, told } = alone()
    const job = hf.job({
      name: 'job',
      ...QUIET,
      input: z.boolean(),
      run({ input }) {
        if (!input) throw new Error('no')
      },
    })
    await hf.work()
    // One early failure, even nine, are no reason for alarm.
    await job.enqueueMany(Array.from({ length: 9 }, () => false))
    await world.advance(30_000)
    expect(told.of('health.changed')).toEqual([])
    await job.enqueueMany([true, false])
    await world.advance(30_000)
    expect(told.of('health.changed')[0]?.problems).toEqual([
      '10 of its last 11 attempts failed: 90.9 %, more than 10 %.',
    ])
    await job.enqueueMany(Array.from({ length: 100 }, () => true))
    await world.advance(30_000)
    expect(told.of('health.changed').map(({ healthy }) => healthy)).toEqual([false, true])
  })

  test('is overrun where more than a thousand jobs wait, or as many as it is told', async () => {
    const { hf, world } = alone({ health: { queueSize: 2, idle: '1d' } })
    const gate = deferred()
    const job = hf.job({ name: 'job', timeout: '1h', run: () => gate.promise })
    await hf.work({ name: 'strict', concurrency: 1 })
    await hf.work({ name: 'lenient', concurrency: 1, health: { queueSize: 3 } })
    await job.enqueueMany(Array.from({ length: 5 }))
    await world.advance(1_000)
    expect((await hf.health.report()).workers.map(({ problems }) => problems)).toEqual([
      ['3 jobs wait in default, more than 2.'],
      [],
    ])
    gate.resolve()
    await world.advance(1_000)
    expect(await hf.health.report()).toMatchObject({ healthy: true })
  })

  test('is judged by its own process, which the others can read', async () => {
    const world = new VirtualWorld()
    const { hf } = world.process({ health: { queueSize: 0, every: '1m' } })
    const job = hf.job({ name: 'job', run: () => undefined })
    await hf.work()
    await hf.pause('default')
    await job.enqueue()
    const viewer = world.process()
    await world.advance(59_000)
    expect(await viewer.hf.workers.status()).toMatchObject([{ healthy: true, queueSize: 1 }])
    await world.advance(1_000)
    expect(await viewer.hf.workers.status()).toMatchObject([
      { healthy: false, problems: ['1 job waits in default, more than 0.'] },
    ])
    expect(await viewer.hf.health.report()).toEqual({ healthy: true, workers: [], checks: [] })
  })

  test('that stops is not unhealthy for it', async () => {
    const { hf, world, clock, told } = alone()
    const job = hf.job({ name: 'job', run: () => busy(clock, 2 * MINUTE_MS) })
    const worker = await hf.work()
    await job.enqueue()
    await world.advance(1_000)
    await world.run(worker.stop({ drain: '5m' }))
    expect(told.of('health.changed')).toEqual([])
  })
})

/** What was noted of workers; the leader notes the store's time as well. */
const workerNotes = (line: { callsTo(method: string): readonly { args: readonly unknown[] }[] }): unknown[] =>
  line.callsTo('notes.put').filter(({ args }) => args[0] === 'worker')

describe('the rounds', () => {
  test('ask the store once for all workers, and end with the last of them', async () => {
    const { hf, world, line } = alone()
    hf.job({ name: 'job', run: () => undefined })
    const workers = await Promise.all([hf.work(), hf.work(), hf.work()])
    await world.advance(60_000)
    // Two of them, and two of the watch over dead letters.
    expect(line.callsTo('admin.queues')).toHaveLength(4)
    expect(workerNotes(line)).toHaveLength(9)
    await world.run(Promise.all(workers.map((worker) => worker.stop())))
    expect(line.callsTo('notes.put').filter(({ args }) => args[2] === null)).toHaveLength(3)
    expect(world.clock.nextDueMs()).toBeUndefined()
  })
})

describe('a check of the user', () => {
  test('is healthy unless it throws, returns false or says what is wrong', async () => {
    const { hf } = alone()
    hf.health.check('nothing', () => undefined)
    hf.health.check('true', async () => true)
    hf.health.check('rows', async () => [{ '?column?': 1 }])
    expect(await hf.health.report()).toMatchObject({ healthy: true })
    hf.health.check('false', () => false)
    hf.health.check('text', async () => 'The disk is 99 % full.')
    hf.health.check('throws', () => {
      throw new Error('no route to host')
    })
    hf.health.check('rejects', () => Promise.reject(new TypeError()))
    const { healthy, checks } = await hf.health.report()
    expect(healthy).toBe(false)
    expect(checks.map(({ name, message }) => [name, message])).toEqual([
      ['nothing', null],
      ['true', null],
      ['rows', null],
      ['false', 'It returned false.'],
      ['text', 'The disk is 99 % full.'],
      ['throws', 'no route to host'],
      ['rejects', 'TypeError'],
    ])
  })

  test('runs every 30 s while a worker runs, and a change is told', async () => {
    const { hf, world, told } = alone()
    hf.job({ name: 'job', run: () => undefined })
    let runs = 0
    let message: string | true = true
    hf.health.check('disk', () => (runs++, message))
    await world.advance(300_000)
    expect(runs).toBe(0)
    const worker = await hf.work()
    await world.advance(60_000)
    expect(runs).toBe(2)
    message = 'The disk is full.'
    await world.advance(60_000)
    message = true
    await world.advance(60_000)
    const about = { kind: 'check', name: 'disk', worker: null }
    expect(told.of('health.changed')).toEqual([
      { ...about, healthy: false, problems: ['The disk is full.'] },
      { ...about, healthy: true, problems: [] },
    ])
    await world.run(worker.stop())
    await world.advance(300_000)
    expect(runs).toBe(6)
  })

  test('that is slow is waited for, once, by all who ask', async () => {
    const { hf, world, clock } = alone()
    let runs = 0
    hf.health.check('slow', () => (runs++, busy(clock, 3_000)))
    const both = Promise.all([hf.health.report(), hf.health.report()])
    const [one, two] = await world.run(both)
    expect(one.checks).toEqual([{ name: 'slow', healthy: true, message: null, durationMs: 3_000 }])
    expect(two).toEqual(one)
    expect(runs).toBe(1)
  })

  test('that hangs is told to end, and not started again before it has', async () => {
    const { hf, world } = alone()
    const gate = deferred()
    const signals: AbortSignal[] = []
    hf.health.check('hung', ({ signal }) => (signals.push(signal), gate.promise), { timeout: '2s' })
    const first = await world.run(hf.health.report())
    expect(first.checks).toEqual([
      { name: 'hung', healthy: false, message: 'It did not return within 2s.', durationMs: 2_000 },
    ])
    expect(whyAborted(signals[0]!)).toBe('timeout')
    await world.advance(58_000)
    const second = await hf.health.report()
    expect(second.checks[0]?.message).toBe('Its signal aborted, and it has not returned for 1m.')
    expect(signals).toHaveLength(1)
    gate.resolve()
    await world.advance(0)
    expect(await hf.health.report()).toMatchObject({ healthy: true })
    expect(signals).toHaveLength(2)
  })

  test('that heeds its signal is started again', async () => {
    const { hf, world, clock } = alone()
    let runs = 0
    hf.health.check('late', ({ signal }) => busy(clock, runs++ === 0 ? 60_000 : 1, signal))
    expect(await world.run(hf.health.report())).toMatchObject({
      checks: [{ message: 'It did not return within 5s.' }],
    })
    expect(await world.run(hf.health.report())).toMatchObject({ healthy: true })
  })

  test('that hangs holds up neither the notes nor a stop', async () => {
    const { hf, world, line } = alone()
    hf.job({ name: 'job', run: () => undefined })
    hf.health.check('hung', () => new Promise(() => undefined), { timeout: '5m' })
    const worker = await hf.work()
    await world.advance(90_000)
    expect(workerNotes(line)).toHaveLength(4)
    const beganMs = world.nowMs
    await world.run(worker.stop())
    expect(world.nowMs).toBe(beganMs)
  })

  test('that is removed is in no report, not even in one that waits for it', async () => {
    const { hf, world, told } = alone()
    const remove = hf.health.check('gone', () => new Promise(() => undefined))
    const report = hf.health.report()
    remove()
    expect(await report).toEqual({ healthy: true, workers: [], checks: [] })
    expect(told.of('health.changed')).toEqual([])
    hf.health.check('gone', () => undefined)
    remove()
    expect((await hf.health.report()).checks).toHaveLength(1)
    expect(world.clock.nextDueMs()).toBeUndefined()
  })

  test('is told to end when the holdfast() closes', async () => {
    const { hf, world, told } = alone()
    hf.job({ name: 'job', run: () => undefined })
    let seen: AbortSignal | undefined
    hf.health.check('hung', ({ signal }) => ((seen = signal), new Promise(() => undefined)))
    await hf.work()
    await world.advance(30_000)
    await world.run(hf.close())
    expect(whyAborted(seen!)).toBe('shutdown')
    expect(told.of('health.changed')).toEqual([])
    expect(world.clock.nextDueMs()).toBeUndefined()
  })

  test('that cannot work is refused', () => {
    const { hf } = alone()
    hf.health.check('disk', () => true)
    const error = (code: string, message: string): unknown => expect.objectContaining({ code, message })
    expect(() => hf.health.check('disk', () => true)).toThrow(
      error('HF_DUPLICATE_CHECK', 'There is already a check named "disk".'),
    )
    expect(() => hf.health.check('', () => true)).toThrow(
      error(
        'HF_BAD_OPTION',
        '`health.check(name)` is ""; it must be a name of 1 to 200 letters, digits and _ . : / @ - without spaces.',
      ),
    )
    expect(() => hf.health.check('a', true as unknown as () => boolean)).toThrow(
      error('HF_BAD_OPTION', '`health.check("a")` is true; it must be a function.'),
    )
    expect(() => hf.health.check('a', () => true, { timeout: '6m' })).toThrow(
      error('HF_BAD_OPTION', '`health.check().timeout` is "6m"; it must be a duration above 0 to 5m.'),
    )
    expect(() => hf.health.check('a', () => true, { timeout: 0 })).toThrow(
      error('HF_BAD_OPTION', '`health.check().timeout` is 0; it must be a duration above 0 to 5m.'),
    )
  })
})
