import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { HoldfastError, InvalidInputError } from '../errors.ts'
import { alone, letPromisesRun, refused, replyBroken, thrownBy } from '../../test/support/virtual.ts'

const run = (): void => undefined

describe('enqueue', () => {
  test('writes the job and gives a handle back', async () => {
    const { hf, world, told } = alone()
    const job = hf.job({ name: 'send-mail', input: z.object({ to: z.string() }), run })
    const handle = await job.enqueue({ to: 'ada' })
    const record = await world.record(handle.id)
    expect(record).toMatchObject({
      name: 'send-mail',
      queue: 'default',
      state: 'ready',
      payload: '{"to":"ada"}',
      attempt: 0,
      maxAttempts: 4,
    })
    expect(handle.duplicate).toBe(false)
    expect(await handle.state()).toBe('ready')
    expect(told.of('job.enqueued')).toEqual([
      { id: handle.id, job: 'send-mail', queue: 'default', duplicate: false },
    ])
  })

  test('stores the raw input: defaults and coercions apply when the job runs', async () => {
    const { hf, world } = alone()
    const seen: unknown[] = []
    const job = hf.job({
      name: 'report',
      input: z.object({ at: z.coerce.date<string>(), format: z.enum(['pdf', 'csv']).default('pdf') }),
      run: ({ input }) => void seen.push(input),
    })
    const { id } = await job.enqueue({ at: '2030-01-01T00:00:00Z' })
    expect((await world.record(id)).payload).toBe('{"at":"2030-01-01T00:00:00Z"}')
    await hf.work()
    await world.until(() => seen.length === 1)
    expect(seen).toEqual([{ at: new Date('2030-01-01T00:00:00Z'), format: 'pdf' }])
  })

  test('takes queue, priority, due time, retry, timeout, tags and metadata as options', async () => {
    const { hf, world } = alone({ queues: { default: {}, mail: { aging: '10s' } } })
    const job = hf.job({ name: 'send-mail', run })
    const { id } = await job.enqueue(undefined, {
      queue: 'mail',
      priority: 'high',
      in: '5m',
      retry: { attempts: 9, crashes: 1, delay: '2s' },
      timeout: '30s',
      tags: ['signup'],
      correlationId: 'request-7',
      metadata: { tenant: 'acme' },
    })
    const record = await world.record(id)
    expect(record).toMatchObject({
      queue: 'mail',
      priority: 7,
      headStartMs: 70_000,
      state: 'scheduled',
      dueAt: world.clock.now() + 300_000,
      maxAttempts: 9,
      maxCrashes: 1,
      envelope: {
        correlationId: 'request-7',
        tags: ['signup'],
        metadata: { tenant: 'acme' },
        timeoutMs: 30_000,
      },
    })
    const later = await job.enqueue(undefined, { at: '2030-01-01T02:00:00Z' })
    expect((await world.record(later.id)).dueAt).toBe(Date.UTC(2030, 0, 1, 2))
  })

  test('at a time in the past means now', async () => {
    const { hf, world } = alone()
    const job = hf.job({ name: 'late', run })
    const { id } = await job.enqueue(undefined, { at: new Date(0) })
    expect(await world.record(id)).toMatchObject({ state: 'ready', dueAt: world.clock.now() })
  })
})

describe('an input that cannot be enqueued', () => {
  test('is refused by its schema before anything is written, with a code and the paths', async () => {
    const { hf, line } = alone()
    const job = hf.job({ name: 'mail', input: z.object({ to: z.object({ email: z.email() }) }), run })
    const error = await thrownBy(job.enqueue({ to: { email: 'nobody' } }))
    expect(error).toBeInstanceOf(InvalidInputError)
    expect(error).toMatchObject({ code: 'HF_INVALID_INPUT', issues: [{ path: 'to.email' }] })
    expect(line.calls).toEqual([])
  })

  test('may be judged by an asynchronous schema', async () => {
    const { hf, line } = alone()
    const even = z.object({ n: z.number().refine((n) => Promise.resolve(n % 2 === 0)) })
    const job = hf.job({ name: 'even', input: even, run })
    await expect(job.enqueue({ n: 1 })).rejects.toMatchObject({
      code: 'HF_INVALID_INPUT',
      issues: [{ path: 'n' }],
    })
    expect(line.callsTo('enqueue')).toHaveLength(0)
    expect((await job.enqueue({ n: 2 })).duplicate).toBe(false)
  })

  test.each([
    ['a bigint', { n: 1n }, 'HF_NOT_JSON', /\$\.n/],
    ['a Date', { at: { deep: [new Date(0)] } }, 'HF_NOT_JSON', /\$\.at\.deep\[0\]/],
    ['a NUL byte', { text: 'a\0b' }, 'HF_NOT_JSON', /\$\.text/],
    ['more than 256 KiB', { text: 'x'.repeat(300_000) }, 'HF_TOO_LARGE', /too large/],
  ])('is refused when it holds %s, before anything is written', async (_, input, code, message) => {
    const { hf, line } = alone()
    const job = hf.job({ name: 'any', input: z.any(), run })
    const error = await thrownBy(job.enqueue(input))
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) })
    expect(line.calls).toEqual([])
  })

  test.each([
    ['an unknown option', { delay: '5m' }, 'HF_BAD_OPTION', /`enqueue\(\)\.delay`/],
    ['`in` and `at` together', { in: '5m', at: new Date(0) }, 'HF_BAD_OPTION', /cannot both/],
    ['a duration that is none', { in: '5 minutes' }, 'HF_BAD_OPTION', /5 minutes/],
    ['a time without a zone', { at: '2030-01-01T00:00:00' }, 'HF_BAD_OPTION', /point in time/],
    ['a priority beyond 9', { priority: 10 }, 'HF_BAD_OPTION', /priority/],
    ['a queue that nobody declared', { queue: 'mial' }, 'HF_UNKNOWN_QUEUE', /mial/],
    ['a retry function', { retry: { backoff: () => 1 } }, 'HF_BAD_OPTION', /function/],
    ['no attempts at all', { retry: { attempts: 0 } }, 'HF_BAD_OPTION', /attempts/],
    ['an empty unique key', { unique: { key: '' } }, 'HF_BAD_OPTION', /unique\.key/],
    ['a tag that is no text', { tags: [1] }, 'HF_BAD_OPTION', /tags\[0\]/],
    ['a timeout of zero', { timeout: 0 }, 'HF_BAD_OPTION', /timeout/],
  ])('is refused with %s, before anything is written', async (_, options, code, message) => {
    const { hf, line } = alone()
    const job = hf.job({ name: 'job', run })
    const error = await thrownBy(job.enqueue(undefined, options as object))
    expect(error).toBeInstanceOf(HoldfastError)
    expect(error).toMatchObject({ code, message: expect.stringMatching(message), hint: expect.any(String) })
    expect(line.calls).toEqual([])
  })
})

describe('concurrent enqueues', () => {
  test('of one turn travel in one call, or in two where they are many', async () => {
    const { hf, line, world } = alone()
    const job = hf.job({ name: 'many', input: z.number(), run })
    await Promise.all(Array.from({ length: 10 }, (_, n) => job.enqueue(n)))
    expect(line.callsTo('enqueue')).toHaveLength(1)
    const handles = await Promise.all(Array.from({ length: 500 }, (_, n) => job.enqueue(n)))
    expect(line.callsTo('enqueue')).toHaveLength(3)
    expect(new Set(handles.map((handle) => handle.id)).size).toBe(500)
    expect(await world.counts()).toEqual({ ready: 510 })
  })

  test('that come while two calls are under way wait for one of them and travel together', async () => {
    const { hf, line } = alone()
    const job = hf.job({ name: 'many', input: z.number(), run })
    const gate = line.hold('enqueue', 'reply', 2)
    const first = job.enqueue(1)
    await letPromisesRun()
    const second = job.enqueue(2)
    await letPromisesRun()
    expect(gate.held()).toBe(2)
    const rest = Array.from({ length: 300 }, (_, n) => job.enqueue(n))
    gate.open()
    await Promise.all([first, second, ...rest])
    expect(line.callsTo('enqueue').length).toBeLessThanOrEqual(4)
  })

  test('are sent at most 1,000 together', async () => {
    const { hf, line } = alone()
    const job = hf.job({ name: 'many', input: z.number(), run })
    await Promise.all(Array.from({ length: 2_500 }, (_, n) => job.enqueue(n)))
    const sizes = line.callsTo('enqueue').map(({ args }) => (args[0] as { jobs: unknown[] }).jobs.length)
    expect(Math.max(...sizes)).toBe(1_000)
    expect(sizes.length).toBeLessThanOrEqual(4)
  })

  test('each get their own answer, whatever the others get', async () => {
    const { hf } = alone()
    const job = hf.job({ name: 'one', input: z.string(), unique: (key) => ({ key }), run })
    const answers = await Promise.allSettled([
      job.enqueue('a'),
      job.enqueue(7 as unknown as string),
      job.enqueue('a'),
      job.enqueue('b'),
    ])
    expect(answers.map((one) => (one.status === 'fulfilled' ? one.value.duplicate : 'refused'))).toEqual([
      false,
      'refused',
      true,
      false,
    ])
  })
})

describe('an enqueue whose answer was lost', () => {
  test('is repeated under the same flush id and written once', async () => {
    const { hf, line, world } = alone()
    const job = hf.job({ name: 'once', run })
    line.fail('enqueue', replyBroken, 2)
    const handle = await world.run(job.enqueue())
    const flushes = line.callsTo('enqueue').map(({ args }) => (args[0] as { id: string }).id)
    expect(flushes).toHaveLength(3)
    expect(new Set(flushes).size).toBe(1)
    expect(await world.counts()).toEqual({ ready: 1 })
    expect(await handle.state()).toBe('ready')
  })

  test('is written once also where the job has run meanwhile', async () => {
    const { hf, line, world, told } = alone()
    let runs = 0
    const job = hf.job({ name: 'once', run: () => void runs++ })
    await hf.work()
    line.fail('enqueue', replyBroken, 1)
    const handle = await world.run(job.enqueue())
    await world.until(() => told.of('job.completed').length === 1)
    await world.advance(60_000)
    expect(runs).toBe(1)
    expect(await handle.state()).toBe('completed')
  })

  test('tells of the outage once, and of its end', async () => {
    const { hf, line, world, told } = alone()
    const job = hf.job({ name: 'once', run })
    line.fail('enqueue', refused, 3)
    await world.run(job.enqueue())
    expect(told.of('store.down')).toHaveLength(1)
    expect(told.of('store.up')).toEqual([{ downMs: expect.any(Number) }])
  })
})
