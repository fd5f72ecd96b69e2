import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { HoldfastError } from '../errors.ts'
import type { Flush } from '../stores/store.ts'
import {
  alone,
  letPromisesRun,
  refused,
  replyBroken,
  thrownBy,
  VirtualWorld,
} from '../../test/support/virtual.ts'

const data = z.object({ repo: z.string(), number: z.int() })
const run = (): void => undefined
const flushSizes = (calls: readonly { readonly args: readonly unknown[] }[]): number[] =>
  calls.map(({ args }) => (args[0] as Flush).jobs.length)

describe('an event that is published', () => {
  test('becomes a job of each subscriber, which gets it as its input', async () => {
    const { hf, world, told } = alone()
    const seen: unknown[] = []
    const merged = hf.event('pull_request.merged', data)
    const announce = hf.subscribe({ name: 'announce', to: merged, run: ({ input }) => void seen.push(input) })
    hf.subscribe({ name: 'audit', to: 'pull_request.*', run: ({ input }) => void seen.push(input) })
    hf.subscribe({ name: 'other', to: 'push', run: () => void seen.push('other') })
    await hf.work()
    const publishedAt = new Date(world.clock.now())
    const { id, subscribers, jobs } = await merged.publish({ repo: 'holdfast', number: 7 })
    expect(subscribers).toEqual(['announce', 'audit'])
    expect(told.of('job.enqueued')).toEqual([
      { id: jobs[0], job: 'announce', queue: 'default', duplicate: false },
      { id: jobs[1], job: 'audit', queue: 'default', duplicate: false },
    ])
    const event = { id, name: 'pull_request.merged', publishedAt, data: { repo: 'holdfast', number: 7 } }
    await world.until(() => told.of('job.completed').length === 2)
    expect(seen).toEqual([event, event])
    expect(await (await announce.get(jobs[0] ?? ''))?.state()).toBe('completed')
    expect(JSON.parse((await world.record(jobs[0] ?? '')).payload)).toEqual({
      id,
      name: 'pull_request.merged',
      at: publishedAt.toISOString(),
      data: { repo: 'holdfast', number: 7 },
    })
  })

  test('reaches a subscriber once, though two of its patterns match', async () => {
    const { hf, world } = alone()
    const paid = hf.event('order.paid')
    await hf.subscribe({ name: 'audit', to: [paid, 'order.*', '**'], run }).subscribe()
    expect((await paid.publish()).subscribers).toEqual(['audit'])
    expect(await world.counts()).toEqual({ ready: 1 })
  })

  test('makes jobs by what each subscriber is defined with', async () => {
    const { hf, world } = alone({ queues: { default: {}, mail: { aging: '10s' } } })
    const paid = hf.event('order.paid')
    const options = { queue: 'mail', priority: 'high', retry: { attempts: 9, crashes: 1 } } as const
    await hf.subscribe({ name: 'receipt', to: paid, ...options, run }).subscribe()
    const { id, jobs } = await paid.publish(undefined, { tags: ['vip'], metadata: { tenant: 'acme' } })
    expect(await world.record(jobs[0] ?? '')).toMatchObject({
      name: 'receipt',
      queue: 'mail',
      state: 'ready',
      priority: 7,
      headStartMs: 70_000,
      maxAttempts: 9,
      maxCrashes: 1,
      envelope: { correlationId: id, tags: ['vip'], metadata: { tenant: 'acme' } },
    })
  })

  test('in a handler carries on its correlation id and its metadata', async () => {
    const { hf, world } = alone()
    const shipped = hf.event('order.shipped')
    let jobs: readonly string[] = []
    const ship = hf.job({ name: 'ship', run: async () => void ({ jobs } = await shipped.publish()) })
    hf.subscribe({ name: 'notify', to: shipped, run })
    await hf.work()
    await ship.enqueue(undefined, { correlationId: 'request-7', metadata: { tenant: 'acme' } })
    await world.until(() => jobs.length === 1)
    expect((await world.record(jobs[0] ?? '')).envelope).toMatchObject({
      correlationId: 'request-7',
      metadata: { tenant: 'acme' },
    })
  })

  test('is retried for the subscriber that fails, and for no other', async () => {
    const { hf, world, told } = alone()
    const ran: string[] = []
    const paid = hf.event('order.paid')
    hf.subscribe({ name: 'fine', to: paid, run: ({ input }) => void ran.push(`fine ${input.id}`) })
    hf.subscribe({
      name: 'flaky',
      to: paid,
      run: ({ input, job }) => {
        ran.push(`flaky ${input.id}`)
        if (job.attempt === 1) throw new Error('not yet')
      },
    })
    hf.subscribe({
      name: 'hopeless',
      to: paid,
      retry: { attempts: 1 },
      run: () => {
        throw new Error('never')
      },
    })
    await hf.work()
    const { id } = await paid.publish()
    await world.until(() => told.of('job.completed').length === 2)
    expect(ran.sort()).toEqual([`fine ${id}`, `flaky ${id}`, `flaky ${id}`])
    expect(await world.counts()).toEqual({ completed: 2, dead: 1 })
  })

  test('by another process reaches subscribers that are not defined there', async () => {
    const world = new VirtualWorld()
    const [there, here] = [
      world.process({ queues: { mail: { aging: '10s' } } }),
      world.process({ queues: { web: {} } }),
    ]
    const seen: unknown[] = []
    there.hf.subscribe({ name: 'announce', to: 'order.*', run: ({ input }) => void seen.push(input.data) })
    await there.hf.work()
    const paid = here.hf.event('order.paid', z.object({ n: z.number().default(1) }))
    expect((await paid.publish({})).subscribers).toEqual(['announce'])
    await world.until(() => seen.length === 1)
    // By a pattern it comes as it was published; the publisher's schema is not known there.
    expect(seen).toEqual([{}])
  })

  test('that nobody hears is told of, and is no error', async () => {
    const { hf, world, told, line } = alone()
    const paid = hf.event('order.paid')
    hf.subscribe({ name: 'not-stored-yet', to: paid, run })
    const answer = await paid.publish()
    expect(answer).toEqual({ id: expect.any(String), subscribers: [], jobs: [] })
    expect(told.of('event.unsubscribed')).toEqual([{ event: 'order.paid', id: answer.id }])
    expect(line.callsTo('enqueue')).toEqual([])
    expect(await world.counts()).toEqual({})
  })

  test('is written once though the answer was lost, and reaches all or none', async () => {
    const { hf, world, line } = alone({ timeout: '5s' })
    const paid = hf.event('order.paid')
    for (const name of ['a', 'b', 'c']) await hf.subscribe({ name, to: paid, run }).subscribe()
    line.fail('enqueue', replyBroken, 1)
    expect((await world.run(paid.publish())).subscribers).toEqual(['a', 'b', 'c'])
    expect(await world.counts()).toEqual({ ready: 3 })
    const mend = line.fail('enqueue', refused)
    expect(await world.run(thrownBy(paid.publish()))).toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
    mend()
    expect(await world.counts()).toEqual({ ready: 3 })
  })

  test('has one deadline for all that it takes', async () => {
    const { hf, world, line } = alone({ timeout: '5s' })
    const paid = hf.event('order.paid')
    await hf.subscribe({ name: 'a', to: paid, run }).subscribe()
    line.fail('notes.list', refused, 4)
    line.fail('enqueue', refused)
    const sinceMs = world.nowMs
    expect(await world.run(thrownBy(paid.publish()))).toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
    expect(world.nowMs - sinceMs).toBeLessThanOrEqual(5_000)
  })
})

describe('an event that cannot be published', () => {
  test.each([
    [
      'data that the schema refuses',
      { repo: 'r', number: 'x' },
      {},
      'HF_INVALID_INPUT',
      /data of event "pr"/,
    ],
    ['data that JSON cannot hold', { repo: 'r', number: 1, at: 1n }, {}, 'HF_NOT_JSON', /\$\.data\.at/],
    [
      'an option of jobs',
      { repo: 'r', number: 1 },
      { priority: 'high' },
      'HF_BAD_OPTION',
      /`publish\(\)\.priority`/,
    ],
    ['a tag that is no text', { repo: 'r', number: 1 }, { tags: [1] }, 'HF_BAD_OPTION', /tags/],
    [
      'a transaction where there are none',
      { repo: 'r', number: 1 },
      { tx: {} },
      'HF_NO_TRANSACTIONS',
      /memory/,
    ],
  ])('is refused with %s, before anything is read or written', async (_, given, options, code, message) => {
    const { hf, line } = alone()
    const event = hf.event('pr', z.looseObject({ repo: z.string(), number: z.int() }))
    const error = await thrownBy(event.publish(given as never, options as never))
    expect(error).toMatchObject({ code, message: expect.stringMatching(message), hint: expect.any(String) })
    expect(line.calls).toEqual([])
  })

  test('is refused where it has more than 1,000 subscribers; others that travel with it are not', async () => {
    const { hf, world } = alone()
    const [paid, shipped] = [hf.event('order.paid'), hf.event('order.shipped')]
    await hf.subscribe({ name: 'one', to: shipped, run }).subscribe()
    const [note] = await world.store.notes.list('subscriber')
    const text = note?.text.replace('order.shipped', 'order.paid') ?? ''
    for (let n = 0; n <= 1_000; n++) await world.store.notes.put('subscriber', `many-${n}`, text, null)
    const [many, one] = await Promise.allSettled([paid.publish(), shipped.publish()])
    expect(many).toMatchObject({ reason: { code: 'HF_TOO_MANY_SUBSCRIBERS' } })
    expect(one).toMatchObject({ value: { subscribers: ['one'] } })
    expect(await world.counts()).toEqual({ ready: 1 })
  })

  test('is refused where a subscription cannot be read: its subscriber would miss it', async () => {
    const { hf, world } = alone()
    await world.store.notes.put('subscriber', 'newer', '{"v":2}', null)
    const error = await thrownBy(hf.event('order.paid').publish())
    expect(error).toMatchObject({ code: 'HF_SCHEMA_TOO_NEW', message: expect.stringContaining('"newer"') })
  })

  test('has a name that is none, or one that is taken', () => {
    const { hf } = alone()
    hf.event('order.paid')
    expect(() => hf.event('order.*')).toThrow(expect.objectContaining({ code: 'HF_BAD_EVENT' }))
    expect(() => hf.event('order.paid')).toThrow(expect.objectContaining({ code: 'HF_DUPLICATE_EVENT' }))
    expect(() => hf.event('order.shipped', {} as never)).toThrow(
      expect.objectContaining({ code: 'HF_BAD_JOB' }),
    )
  })
})

describe('events that are published at the same time', () => {
  test('are read for and written together', async () => {
    const { hf, line, world } = alone()
    const merged = hf.event('pull_request.merged', data)
    for (const name of ['a', 'b']) await hf.subscribe({ name, to: 'pull_request.*', run }).subscribe()
    const publish = (count: number) =>
      Promise.all(Array.from({ length: count }, (_, number) => merged.publish({ repo: 'r', number })))
    await publish(15)
    expect(line.callsTo('notes.list')).toHaveLength(1)
    expect(flushSizes(line.callsTo('enqueue'))).toEqual([30])
    // Two halves, so that one is prepared while the other is under way.
    const answers = await publish(500)
    expect(line.callsTo('notes.list')).toHaveLength(3)
    expect(new Set(answers.map(({ id }) => id)).size).toBe(500)
    expect(await world.counts()).toEqual({ ready: 1_030 })
  })

  test('have the jobs of each in one flush, of 1,000 at most', async () => {
    const { hf, line } = alone()
    const merged = hf.event('pull_request.merged', data)
    for (let n = 0; n < 300; n++) await hf.subscribe({ name: `s${n}`, to: merged, run }).subscribe()
    await Promise.all(Array.from({ length: 10 }, (_, number) => merged.publish({ repo: 'r', number })))
    expect(flushSizes(line.callsTo('enqueue'))).toEqual([900, 900, 900, 300])
  })

  test('reach whoever subscribed before each was called, however many are under way', async () => {
    const { hf, line } = alone()
    const paid = hf.event('order.paid')
    await hf.subscribe({ name: 'early', to: paid, run }).subscribe()
    const gate = line.hold('notes.list', 'reply', 2)
    const first = [paid.publish()]
    await letPromisesRun()
    first.push(paid.publish())
    await letPromisesRun()
    await hf.subscribe({ name: 'late', to: paid, run }).subscribe()
    const second = paid.publish()
    gate.open()
    expect((await Promise.all(first)).map(({ subscribers }) => subscribers)).toEqual([['early'], ['early']])
    expect((await second).subscribers).toEqual(['early', 'late'])
  })

  test('each get their own answer, whatever the others get', async () => {
    const { hf, line, world } = alone({ timeout: '1s' })
    const merged = hf.event('pull_request.merged', data)
    for (let n = 0; n < 600; n++) await hf.subscribe({ name: `s${n}`, to: merged, run }).subscribe()
    // Too many to share a flush: the second is the one that fails.
    let flushes = 0
    line.fail(
      ({ method }) => method === 'enqueue' && ++flushes > 1,
      () => Promise.reject(new HoldfastError('HF_STORE_FULL', 'no room')),
    )
    const publish = (number: number) => merged.publish({ repo: 'r', number })
    const answers = await Promise.allSettled([publish(0.5), publish(1), publish(2)])
    expect(answers).toMatchObject([
      { reason: { code: 'HF_INVALID_INPUT' } },
      { value: { subscribers: { length: 600 } } },
      { reason: { code: 'HF_STORE_FULL' } },
    ])
    expect(await world.counts()).toEqual({ ready: 600 })
  })
})

describe('a subscription', () => {
  test('is stored when a worker starts that runs the subscriber, and replaced by the next', async () => {
    const world = new VirtualWorld()
    const [before, after] = [world.process(), world.process()]
    const define = ({ hf }: typeof before, to: string) => hf.subscribe({ name: 'audit', to, run })
    define(before, 'order.*')
    before.hf.subscribe({ name: 'unrelated', to: '**', run })
    await before.hf.work({ jobs: [before.hf.job({ name: 'job', run })] })
    expect(await before.hf.subscriptions.list()).toEqual([])
    const worker = await before.hf.work()
    await world.run(worker.stop())
    expect(await after.hf.subscriptions.list()).toMatchObject([
      { name: 'audit', to: ['order.*'], queue: 'default' },
      { name: 'unrelated', to: ['**'] },
    ])
    await define(after, 'invoice.*').subscribe()
    expect((await before.hf.event('order.paid').publish()).subscribers).toEqual(['unrelated'])
    expect((await before.hf.event('invoice.paid').publish()).subscribers).toEqual(['audit', 'unrelated'])
  })

  test('ends with unsubscribe; jobs that are made already still run', async () => {
    const { hf, world, told } = alone()
    const paid = hf.event('order.paid')
    const audit = hf.subscribe({ name: 'audit', to: paid, run })
    await audit.subscribe()
    await paid.publish()
    expect(await audit.unsubscribe()).toBe(true)
    expect(await audit.unsubscribe()).toBe(false)
    expect((await paid.publish()).subscribers).toEqual([])
    await hf.work()
    await world.until(() => told.of('job.completed').length === 1)
  })

  test('of code that is gone can be removed', async () => {
    const world = new VirtualWorld()
    const [gone, here] = [world.process(), world.process()]
    await gone.hf.subscribe({ name: 'audit', to: '**', run }).subscribe()
    const [subscription] = await here.hf.subscriptions.list()
    expect(await subscription?.remove()).toBe(true)
    expect(await here.hf.subscriptions.list()).toEqual([])
  })
})
