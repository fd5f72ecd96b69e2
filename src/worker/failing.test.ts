import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { DependencyDown, Fatal, ResourcesExhausted, RetryIn } from '../errors.ts'
import type { RetryPolicy } from '../job/retry.ts'
import { alone, busy, deferred } from '../../test/support/virtual.ts'

/** One job that does what it is told at each attempt. */
function failing(each: (attempt: number) => unknown, retry?: RetryPolicy) {
  const setting = alone()
  const startedAtMs: number[] = []
  const job = setting.hf.job({
    name: 'failing',
    ...(retry === undefined ? {} : { retry }),
    run({ job: { attempt } }) {
      startedAtMs.push(setting.world.nowMs)
      return each(attempt)
    },
  })
  const gaps = (): number[] => startedAtMs.slice(1).map((ms, at) => ms - startedAtMs[at]!)
  return { ...setting, job, startedAtMs, gaps }
}

const raise = (thrown: unknown): never => {
  throw thrown
}

describe('a job that fails', () => {
  test('is retried with growing, jittered delays until its attempts are used, then it is dead', async () => {
    const { hf, world, told, job, gaps } = failing((attempt) => raise(new Error(`no ${attempt}`)))
    const { id } = await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.failed').some((event) => event.final))
    expect(told.of('job.failed').map(({ attempt, final }) => [attempt, final])).toEqual([
      [1, false],
      [2, false],
      [3, false],
      [4, true],
    ])
    for (const [at, gapMs] of gaps().entries()) {
      const fullMs = 1_000 * 2 ** at
      expect(gapMs).toBeGreaterThanOrEqual(fullMs / 2)
      expect(gapMs).toBeLessThanOrEqual(fullMs + 5)
    }
    expect(await world.record(id)).toMatchObject({
      state: 'dead',
      attempt: 4,
      error: { kind: 'transient', message: 'no 4', attempt: 4 },
    })
  })

  test('tells when it will be tried again, with the error itself and its fingerprint', async () => {
    const boom = new TypeError('boom')
    const { hf, world, told, job } = failing(() => raise(boom), { delay: '10s', jitter: false })
    await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.failed').length === 1)
    const [event] = told.of('job.failed')
    expect(event?.error).toBe(boom)
    expect(event).toMatchObject({ kind: 'transient', final: false, retryInMs: 10_000 })
    expect(event?.fingerprint).toMatch(/^[0-9a-f]{16}$/)
  })

  test('can succeed at a later attempt', async () => {
    const { hf, world, job } = failing((attempt) => (attempt < 3 ? raise(new Error('not yet')) : 'done'))
    const handle = await job.enqueue()
    await hf.work()
    expect(await world.run(handle.result())).toBe('done')
    expect(await world.record(handle.id)).toMatchObject({ attempt: 3, state: 'completed' })
  })

  test('keeps to the policy of its definition and to what the enqueue overrides of it', async () => {
    const { hf, world, told, job, gaps } = failing(() => raise(new Error('no')), {
      backoff: 'fixed',
      delay: '1m',
      jitter: false,
    })
    await job.enqueue(undefined, { retry: { attempts: 3, delay: '7s' } })
    await hf.work()
    await world.until(() => told.of('job.failed').some((event) => event.final))
    expect(gaps()).toEqual([7_000, 7_000])
  })

  test('waits as long as its own backoff function says', async () => {
    const { hf, world, told, job, gaps } = failing((attempt) => raise(new Error(`${attempt}`)), {
      attempts: 3,
      jitter: false,
      backoff: (attempt, error) => attempt * 3_000 + Number(error.message),
    })
    await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.failed').some((event) => event.final))
    expect(gaps()).toEqual([3_001, 6_002])
  })

  test('is dead at once where `when` refuses to retry', async () => {
    const { hf, world, told, job } = failing(() => raise(new Error('404')), {
      when: (error) => error.message !== '404',
    })
    await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.failed').length === 1)
    expect(told.of('job.failed')[0]).toMatchObject({ final: true, kind: 'permanent', retryInMs: null })
  })
})

describe('what a handler throws', () => {
  test('Fatal makes a dead letter at once', async () => {
    const { hf, world, told, job } = failing(() => raise(new Fatal('never')))
    const { id } = await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.failed').length === 1)
    expect(told.of('job.failed')[0]).toMatchObject({ final: true, kind: 'permanent', attempt: 1 })
    expect(await world.record(id)).toMatchObject({ state: 'dead', error: { name: 'Fatal' } })
  })

  test('RetryIn says when to try again, and uses an attempt', async () => {
    const { hf, world, told, job, gaps } = failing(() => raise(new RetryIn('42s')), { attempts: 2 })
    await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.failed').length === 2)
    expect(gaps()).toEqual([42_000])
    expect(told.of('job.failed')[1]?.final).toBe(true)
  })

  test('DependencyDown parks the job without using an attempt, as often as it takes', async () => {
    let down = 6
    const { hf, world, told, job } = failing(
      (attempt) => (down-- > 0 ? raise(new DependencyDown('smtp')) : attempt),
      { attempts: 1 },
    )
    const handle = await job.enqueue()
    await hf.work()
    expect(await world.run(handle.result({ timeout: '1h' }))).toBe(1)
    expect(told.of('job.snoozed')).toHaveLength(6)
    for (const { delayMs, error } of told.of('job.snoozed')) {
      expect(delayMs).toBeGreaterThanOrEqual(30_000)
      expect(delayMs).toBeLessThanOrEqual(45_000)
      expect(error).toBeInstanceOf(DependencyDown)
    }
    expect(told.of('job.failed')).toHaveLength(0)
  })

  test.each([
    ['ResourcesExhausted', new ResourcesExhausted('no memory')],
    ['an error of the system', Object.assign(new Error('too many open files'), { code: 'EMFILE' })],
  ])('%s is retried later than a plain failure, and the worker pauses its claims', async (_, thrown) => {
    const { hf, world, told, job, gaps, line } = failing((attempt) => (attempt === 1 ? raise(thrown) : null))
    await job.enqueue()
    await hf.work()
    await world.until(() => told.of('worker.slowed').length === 1)
    const pausedAtMs = world.nowMs
    const before = line.callsTo('cycle').length
    expect(told.of('worker.slowed')[0]).toMatchObject({ pauseMs: 1_000, job: 'failing' })
    await world.until(() => told.of('job.completed').length === 1)
    expect(gaps()[0]).toBeGreaterThanOrEqual(7_500)
    const claimed = line
      .callsTo('cycle')
      .slice(before)
      .filter(({ args }) => (args[0] as { claim: unknown }).claim !== null)
    expect(claimed[0]!.atMs).toBeGreaterThanOrEqual(pausedAtMs + 1_000)
    expect(told.of('job.failed')[0]?.kind).toBe('resources_exhausted')
  })

  test.each([
    ['a text', 'just a text', 'just a text'],
    ['nothing', undefined, 'undefined'],
    ['null', null, 'null'],
    ['an object without a prototype', Object.assign(Object.create(null) as object, { a: 1 }), ''],
    ['a symbol', Symbol('odd'), 'odd'],
    ['an error with a NUL byte', new Error('a\0b'), 'a'],
    [
      'an error whose message throws',
      Object.defineProperty(new Error('x'), 'message', { get: () => raise('no') }),
      '',
    ],
  ])('%s fails the job like any error', async (_, thrown, message) => {
    const { hf, world, told, job } = failing(() => raise(thrown), { attempts: 2 })
    const { id } = await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.failed').length === 2)
    expect(told.of('job.failed').map((event) => event.final)).toEqual([false, true])
    expect(told.of('job.failed')[0]?.error).toBeInstanceOf(Error)
    const record = await world.record(id)
    expect(record).toMatchObject({ state: 'dead', error: { kind: 'transient' } })
    expect(record.error?.message).toContain(message)
    expect(record.error?.message).not.toContain('\0')
  })
})

describe('snooze', () => {
  test('runs the job again later without using an attempt', async () => {
    const { hf, world, told, clock } = alone()
    const ran: number[] = []
    const job = hf.job({
      name: 'patient',
      retry: { attempts: 1 },
      async run({ job: { attempt }, snooze }) {
        ran.push(attempt)
        await busy(clock, 10)
        return ran.length < 4 ? snooze('5m') : 'done'
      },
    })
    const handle = await job.enqueue()
    await hf.work()
    expect(await world.run(handle.result({ timeout: '1h' }))).toBe('done')
    expect(ran).toEqual([1, 1, 1, 1])
    expect(told.of('job.snoozed')).toHaveLength(3)
    expect(told.of('job.snoozed')[0]).toMatchObject({ delayMs: 300_000, error: null, durationMs: 10 })
    expect(world.nowMs).toBeGreaterThanOrEqual(900_000)
  })

  test('takes a delay that is one, else the attempt fails', async () => {
    const { hf, world, told } = alone()
    const job = hf.job({ name: 'odd', run: ({ snooze }) => snooze('soon' as '1s') })
    await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.failed').length === 1)
    expect(told.of('job.failed')[0]?.error).toMatchObject({ code: 'HF_BAD_OPTION' })
  })
})

describe('a job that this worker does not know', () => {
  test('is retried over minutes, then dead with HF_UNKNOWN_JOB, whatever policy it brought along', async () => {
    const { hf, world, told } = alone()
    hf.job({ name: 'known', run: () => undefined })
    const stranger = world.process().hf.contract({ name: 'stranger', retry: { delay: '1s' } })
    const { id } = await stranger.enqueue(undefined, { retry: { delay: '2s', jitter: false } })
    await hf.work()
    await world.until(() => told.of('job.failed').some((event) => event.final))
    expect(world.nowMs).toBeGreaterThan(100_000)
    expect(told.of('job.failed')).toHaveLength(4)
    expect(await world.record(id)).toMatchObject({ state: 'dead', error: { code: 'HF_UNKNOWN_JOB' } })
  })

  test('is run by the deploy that knows it', async () => {
    const { hf, world, told } = alone()
    hf.job({ name: 'known', run: () => undefined })
    const next = world.process()
    const job = next.hf.job({ name: 'new', run: () => 'new code' })
    const handle = await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.failed').length === 1)
    await next.hf.work()
    await world.run(hf.close())
    expect(await world.run(handle.result())).toBe('new code')
  })
})

describe('a job with overrides that a newer version wrote', () => {
  test('is settled by the policy of its definition', async () => {
    const { hf, world, told } = alone()
    const gate = deferred()
    const job = hf.job({ name: 'job', input: z.number(), run: () => gate.promise })
    await job.enqueue(1)
    const flush = (await import('../job/ids.ts')).makeIds(world.clock, world.random)
    const { jobs } = await world.store.admin.list({ limit: 1, after: null })
    const id = flush.job()
    const envelope = { ...jobs[0]!.envelope, retry: { storm: 'never' } as object }
    await world.store.enqueue({
      id: flush.flush(),
      jobs: [{ ...jobs[0]!, id, due: { inMs: 0 }, unique: null, envelope }],
    })
    await hf.work()
    await world.advance(10)
    gate.reject(new Error('fails'))
    await world.until(() => told.of('job.failed').length === 2)
    expect(await world.record(id)).toMatchObject({ state: 'scheduled', attempt: 1 })
  })
})
