import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Fatal } from '../errors.ts'
import { alone, thrownBy, VirtualWorld } from '../../test/support/virtual.ts'
import type { DeadLetter } from './dead-letters.ts'

/** A job that fails for good in the way its input says, until it is mended. */
async function withDead(...kinds: string[]) {
  const fleet = alone({ queues: { default: {}, mail: {} } })
  const { hf, world, told } = fleet
  let mended = false
  const job = hf.job({
    name: 'flaky',
    input: z.object({ kind: z.string() }),
    retry: { attempts: 2, delay: '1s', jitter: false },
    run: ({ input, log }) => {
      if (mended) return `mended ${input.kind}`
      log.info(`about to fail with ${input.kind}`)
      throw new TypeError(`broken by ${input.kind}`)
    },
  })
  await job.enqueueMany(kinds.map((kind) => ({ kind })))
  const worker = await hf.work()
  await world.until(() => told.of('job.failed').filter(({ final }) => final).length === kinds.length)
  return { ...fleet, job, worker, mend: () => (mended = true) }
}

describe('dead letters', () => {
  test('tell everything about the job and its attempts', async () => {
    const { hf, worker } = await withDead('rust')
    const { letters, next } = await hf.deadLetters.list()
    expect(next).toBeNull()
    expect(letters).toHaveLength(1)
    const [letter] = letters as [DeadLetter]
    expect(letter).toMatchObject({
      job: 'flaky',
      queue: 'default',
      input: { kind: 'rust' },
      error: { name: 'TypeError', message: 'broken by rust', kind: 'transient', attempt: 2 },
      attempts: [
        { attempt: 1, outcome: 'failed', worker: worker.id, error: { message: 'broken by rust' } },
        { attempt: 2, outcome: 'failed', worker: worker.id, error: { name: 'TypeError' } },
      ],
    })
    expect(letter.error.stack).toContain('TypeError')
    expect(letter.error.fingerprint).toBe(letter.attempts[0]?.error?.fingerprint)
    expect(letter.attempts[1]!.startedAt - letter.attempts[0]!.startedAt).toBeGreaterThanOrEqual(1_000)
    expect(letter.failedAt.getTime()).toBeGreaterThan(letter.enqueuedAt.getTime())
    expect(letter.log.map(({ message }) => message)).toContain('about to fail with rust')
    expect(await hf.deadLetters.get(letter.id)).toEqual(letter)
  })

  test('are listed page by page and by filter', async () => {
    const { hf } = await withDead('a', 'b', 'c')
    const first = await hf.deadLetters.list({ limit: 2 })
    const second = await hf.deadLetters.list({ limit: 2, after: first.next! })
    expect([...first.letters, ...second.letters].map(({ input }) => input)).toEqual([
      { kind: 'c' },
      { kind: 'b' },
      { kind: 'a' },
    ])
    expect((await hf.deadLetters.list({ queues: ['mail'] })).letters).toEqual([])
    const failedAt = first.letters[0]!.failedAt
    expect((await hf.deadLetters.list({ since: new Date(failedAt.getTime() + 1) })).letters).toEqual([])
  })

  test('are grouped by what they failed with', async () => {
    const { hf } = await withDead('rust', 'rust', 'water')
    const groups = await hf.deadLetters.groups()
    expect(groups.map(({ job, count, message }) => [job, count, message])).toEqual([
      ['flaky', 2, 'broken by rust'],
      ['flaky', 1, 'broken by water'],
    ])
    expect(groups[0]!.firstAt).toBeInstanceOf(Date)
    const { letters } = await hf.deadLetters.list({ fingerprints: [groups[0]!.fingerprint] })
    expect(letters.map(({ input }) => input)).toEqual([{ kind: 'rust' }, { kind: 'rust' }])
  })

  test('know of no job that is not dead', async () => {
    const { hf } = alone()
    const { id } = await hf.job({ name: 'fine', run: () => undefined }).enqueue()
    expect(await hf.deadLetters.get(id)).toBeNull()
    expect(await hf.deadLetters.groups()).toEqual([])
  })
})

describe('replay', () => {
  test('runs one again, with all its attempts', async () => {
    const { hf, world, told, mend } = await withDead('rust', 'water')
    const { letters } = await hf.deadLetters.list()
    mend()
    expect(await hf.deadLetters.replay(letters[0]!.id)).toEqual({ changed: 1, skipped: 0, cursor: null })
    await world.until(() => told.of('job.completed').length === 1)
    expect(told.of('job.completed')[0]).toMatchObject({ id: letters[0]!.id, attempt: 1 })
    expect((await hf.deadLetters.list()).letters.map(({ id }) => id)).toEqual([letters[1]!.id])
  })

  test('runs all that match, and remembers what they went through', async () => {
    const { hf, world, told, mend, job } = await withDead('rust', 'rust', 'water')
    const [rust] = await hf.deadLetters.groups()
    mend()
    const filter = { fingerprints: [rust!.fingerprint], jobs: ['flaky'], queues: ['default'] }
    expect(await hf.deadLetters.replay(filter)).toMatchObject({ changed: 2 })
    await world.until(() => told.of('job.completed').length === 2)
    const handle = await job.get(told.of('job.completed')[0]!.id)
    const outcomes = (await handle!.attempts()).map(({ outcome, attempt }) => [outcome, attempt])
    expect(outcomes).toEqual([
      ['failed', 1],
      ['failed', 2],
      ['completed', 1],
    ])
  })

  test('can change the input: for one, or made of each letter', async () => {
    const { hf, world, told, mend, job } = await withDead('a', 'b')
    mend()
    const seen: unknown[] = []
    const input = (letter: DeadLetter) => {
      seen.push(letter.input)
      return { kind: `better ${(letter.input as { kind: string }).kind}` }
    }
    expect(await hf.deadLetters.replay({ all: true }, { input })).toMatchObject({ changed: 2, skipped: 0 })
    await world.until(() => told.of('job.completed').length === 2)
    expect(seen).toEqual([{ kind: 'b' }, { kind: 'a' }])
    const results = await Promise.all(
      told.of('job.completed').map(async ({ id }) => (await job.get(id))!.result()),
    )
    expect(results.toSorted()).toEqual(['mended better a', 'mended better b'])
  })

  test('refuses an input that the schema refuses, before anything is changed', async () => {
    const { hf } = await withDead('a')
    const { letters } = await hf.deadLetters.list()
    const error = await thrownBy(hf.deadLetters.replay(letters[0]!.id, { input: { kind: 7 } }))
    expect(error).toMatchObject({ code: 'HF_INVALID_INPUT' })
    expect((await hf.deadLetters.list()).letters).toHaveLength(1)
  })

  test('tells of its progress, can be broken off, and goes on from there', async () => {
    const { hf, world } = alone()
    const job = hf.job({ name: 'many', input: z.number(), run: () => Promise.reject(new Fatal('no')) })
    const worker = await hf.work({ concurrency: 100 })
    await job.enqueueMany(Array.from({ length: 2_500 }, (_, index) => index))
    await world.until(() => true)
    for (let dead = 0; dead < 2_500; dead = (await world.counts()).dead ?? 0) await world.advance(100)
    await world.run(worker.stop())
    const abort = new AbortController()
    const steps: unknown[] = []
    const replaying = hf.deadLetters.replay(
      { all: true },
      {
        signal: abort.signal,
        onProgress: (progress) => {
          steps.push(progress)
          abort.abort(new Error('enough'))
        },
      },
    )
    expect(await thrownBy(replaying)).toMatchObject({ message: 'enough' })
    expect(steps).toEqual([{ changed: 1_000, skipped: 0, cursor: expect.any(String) }])
    const { cursor } = steps[0] as { cursor: string }
    expect(await hf.deadLetters.replay({ all: true }, { from: cursor })).toEqual({
      changed: 1_500,
      skipped: 0,
      cursor: null,
    })
    expect(await world.counts()).toEqual({ ready: 2_500 })
  })

  test.each([
    ['nothing at all', {}],
    ['a misspelt part', { fingerprint: ['x'] }],
    ['all and something else', { all: true, queues: ['mail'] }],
    ['all that is not true', { all: false }],
    ['a text where a list belongs', { queues: 'mail' }],
    ['no object', 7],
  ])('refuses %s as a filter', async (_, filter) => {
    const { hf } = alone()
    for (const action of ['replay', 'discard'] as const)
      expect(await thrownBy(hf.deadLetters[action](filter as never))).toMatchObject({ code: 'HF_BAD_FILTER' })
  })
})

test('discard forgets what is meant', async () => {
  const { hf, world } = await withDead('a', 'b')
  expect(await hf.deadLetters.discard({ jobs: ['other'] })).toMatchObject({ changed: 0 })
  expect(await hf.deadLetters.discard({ all: true })).toMatchObject({ changed: 2 })
  expect(await world.counts()).toEqual({})
})

describe('a queue without dead letters', () => {
  test('keeps nothing of what fails for good', async () => {
    const { hf, world, told } = alone({ queues: { default: {}, lossy: { deadLetters: false } } })
    const job = hf.job({ name: 'no', run: () => Promise.reject(new Fatal('no')) })
    await job.enqueue()
    await job.enqueue(undefined, { queue: 'lossy' })
    await hf.work()
    await world.until(() => told.of('job.failed').length === 2)
    expect(await world.counts()).toEqual({ dead: 1 })
  })

  test('keeps nothing of what lost too many workers either', async () => {
    const world = new VirtualWorld()
    const queues = { default: { deadLetters: false } }
    const doomed = world.process({ queues })
    const job = doomed.hf.job({
      name: 'doomed',
      retry: { crashes: 0 },
      run: () => new Promise(() => undefined),
    })
    const { id } = await job.enqueue()
    await doomed.hf.work()
    await world.until(() => doomed.told.of('job.started').length === 1)
    doomed.kill()
    const other = world.process({ queues })
    other.hf.job({ name: 'doomed', run: () => undefined })
    await other.hf.work()
    await world.until(() => other.told.of('job.rescued').length === 1)
    await world.advance(1_000)
    expect(await world.store.admin.get(id as never)).toBeNull()
  })
})

describe('the handler of dead letters', () => {
  test('is called once for each, whoever leads, and again after a replay that failed', async () => {
    const world = new VirtualWorld()
    const web = world.process()
    web.hf.job({ name: 'other', run: () => undefined })
    await web.hf.work({ queues: ['default'], concurrency: 1 })
    const { hf, told } = world.process({ queues: { mine: {} } })
    const letters: DeadLetter[] = []
    hf.deadLetters.handle((letter) => void letters.push(letter))
    const job = hf.job({
      name: 'bad',
      input: z.number(),
      run: ({ input }) => Promise.reject(new Fatal(`no ${input}`)),
    })
    await hf.work({ jobs: [job] })
    await world.advance(10_000)
    await job.enqueueMany([1, 2])
    await world.until(() => letters.length === 2)
    expect(letters.map(({ error }) => error.message).toSorted()).toEqual(['no 1', 'no 2'])
    await world.advance(120_000)
    expect(letters).toHaveLength(2)
    await hf.deadLetters.replay(letters[0]!.id)
    await world.until(() => letters.length === 3)
    expect(letters[2]!.id).toBe(letters[0]!.id)
    expect(told.of('duty.failed')).toEqual([])
  })

  test('is retried as a job is, and not handed its own failure', async () => {
    const { hf, world, told } = alone()
    let calls = 0
    hf.deadLetters.handle(
      () => {
        calls++
        throw new Error('the pager is down')
      },
      { retry: { attempts: 3, delay: '1s' } },
    )
    const job = hf.job({ name: 'bad', run: () => Promise.reject(new Fatal('no')) })
    await hf.work()
    await world.advance(10_000)
    await job.enqueue()
    await world.until(() => told.of('job.failed').filter(({ final }) => final).length === 2)
    await world.advance(300_000)
    expect(calls).toBe(3)
    expect((await hf.deadLetters.list()).letters).toHaveLength(2)
  })

  test('misses nothing that failed while nobody led', async () => {
    const world = new VirtualWorld()
    const start = () => {
      const process = world.process()
      const seen: string[] = []
      process.hf.deadLetters.handle((letter) => void seen.push(letter.id))
      const job = process.hf.job({ name: 'bad', run: () => Promise.reject(new Fatal('no')) })
      return { ...process, job, seen }
    }
    const first = start()
    const worker = await first.hf.work()
    await world.advance(10_000)
    const { id } = await first.job.enqueue()
    await world.until(() => first.told.of('job.failed').length === 1)
    await world.run(worker.stop())
    expect(first.seen).toEqual([])
    await world.advance(3_600_000)
    const second = start()
    await second.hf.work()
    await world.until(() => second.seen.length === 1)
    expect(second.seen).toEqual([id])
  })

  test('is not called again by whoever leads next, and old letters are not read for ever', async () => {
    const world = new VirtualWorld()
    const seen: string[] = []
    const start = async () => {
      const process = world.process()
      process.hf.deadLetters.handle((letter) => void seen.push(letter.id))
      const job = process.hf.job({ name: 'bad', run: () => Promise.reject(new Fatal('no')) })
      return { ...process, job, worker: await process.hf.work() }
    }
    let process = await start()
    await world.advance(10_000)
    await process.job.enqueueMany([undefined, undefined])
    await world.until(() => seen.length === 2)
    for (let deploy = 0; deploy < 3; deploy++) {
      await world.advance(3_600_000)
      await world.run(process.worker.stop())
      process = await start()
    }
    await world.advance(600_000)
    expect(seen).toHaveLength(2)
    const found = (await world.store.admin.list({ states: ['dead'], limit: 10, after: null })).jobs
    expect(found).toHaveLength(2)
    const [query] = process.line.callsTo('admin.list').at(-1)?.args ?? []
    const { finishedFrom } = query as { finishedFrom: number }
    for (const letter of found) expect('finishedAt' in letter && letter.finishedAt).toBeLessThan(finishedFrom)
  })

  test('that was taken out of the code is forgotten', async () => {
    const world = new VirtualWorld()
    const before = world.process()
    before.hf.deadLetters.handle(() => undefined)
    before.hf.job({ name: 'bad', run: () => undefined })
    await before.hf.work()
    await world.advance(60_000)
    before.kill()
    const after = world.process()
    const job = after.hf.job({ name: 'bad', run: () => Promise.reject(new Fatal('no')) })
    await after.hf.work()
    await world.advance(600_000)
    await job.enqueue()
    await world.advance(600_000)
    expect(await world.counts()).toEqual({ dead: 1 })
  })

  test('is defined once, and refuses what cannot work', () => {
    const { hf } = alone()
    expect(() => hf.deadLetters.handle(7 as never)).toThrow('it must be a function')
    expect(() => hf.deadLetters.handle(() => undefined, { unique: 1 } as never)).toThrow(
      'Unknown option `deadLetters.handle().unique`.',
    )
    hf.deadLetters.handle(() => undefined)
    expect(() => hf.deadLetters.handle(() => undefined)).toThrow('already a job')
  })
})

test('a queue whose dead letters grow is told of once a minute', async () => {
  const { hf, world, told } = alone()
  const job = hf.job({ name: 'bad', run: () => Promise.reject(new Fatal('no')) })
  await job.enqueue()
  await hf.work()
  await world.advance(90_000)
  const before = told.of('deadletters.grew').length
  await job.enqueueMany([undefined, undefined, undefined])
  await world.advance(120_000)
  const [grew, ...more] = told.of('deadletters.grew').slice(before)
  expect(grew).toMatchObject({ queue: 'default', grown: 3, dead: 4 })
  expect(more).toEqual([])
})
