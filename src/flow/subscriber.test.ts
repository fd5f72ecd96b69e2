import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { alone } from '../../test/support/virtual.ts'
import { editOne } from '../stores/conformance/support.ts'

const run = (): void => undefined
const number = z.object({ number: z.coerce.number<string>() })

describe('a subscriber', () => {
  test('gets data as the schema of the event gives it, and as it was published by a pattern', async () => {
    const { hf, world } = alone()
    const seen: Record<string, unknown> = {}
    const opened = hf.event('pr.opened', number)
    hf.subscribe({ name: 'named', to: opened, run: ({ input }) => void (seen['named'] = input.data) })
    hf.subscribe({ name: 'pattern', to: 'pr.*', run: ({ input }) => void (seen['pattern'] = input.data) })
    hf.subscribe({
      name: 'both',
      to: [opened, 'pr.*'],
      run: ({ input }) => void (seen['both'] = input.data),
    })
    await hf.work()
    await opened.publish({ number: '7' })
    await world.until(() => Object.keys(seen).length === 3)
    expect(seen).toEqual({ named: { number: 7 }, pattern: { number: '7' }, both: { number: 7 } })
  })

  test.each([
    ['data that its schema refuses by now', { name: 'pr.opened', data: {} }, /data\.number/],
    ['an event that it does not listen to any more', { name: 'pr.closed', data: {} }, /"pr\.closed"/],
    ['what is no event', { name: 'pr.opened', at: 'yesterday' }, /at: "yesterday"/],
  ])('fails for good on %s', async (_, event, message) => {
    const { hf, world, told } = alone()
    const opened = hf.event('pr.opened', z.object({ number: z.number() }))
    await hf.subscribe({ name: 'named', to: opened, run }).subscribe()
    const { jobs } = await opened.publish({ number: 1 })
    const job = await world.record(jobs[0] ?? '')
    const stored = { ...(JSON.parse(job.payload) as object), ...event }
    await editOne(world.store, job.id, { payload: JSON.stringify(stored) })
    await hf.work()
    await world.until(() => told.of('job.failed').length === 1)
    expect(await world.record(job.id)).toMatchObject({
      state: 'dead',
      attempt: 1,
      error: { kind: 'permanent', code: 'HF_INVALID_INPUT', message: expect.stringMatching(message) },
    })
  })

  test('may judge by an asynchronous schema', async () => {
    const { hf, world } = alone()
    const seen: unknown[] = []
    const even = hf.event(
      'even',
      z.number().refine((n) => Promise.resolve(n % 2 === 0)),
    )
    hf.subscribe({ name: 'keep', to: even, run: ({ input }) => void seen.push(input.data) })
    await hf.work()
    await even.publish(2)
    await expect(even.publish(3)).rejects.toMatchObject({ code: 'HF_INVALID_INPUT' })
    await world.until(() => seen.length === 1)
    expect(seen).toEqual([2])
  })

  test('runs inside the middleware of what it is defined through', async () => {
    const { hf, world } = alone()
    const seen: unknown[] = []
    const paid = hf.event('order.paid')
    hf.use(({ next }) => next({ db: 'here' })).subscribe({
      name: 'book',
      to: paid,
      run: ({ ctx }) => void seen.push(ctx.db),
    })
    await hf.work()
    await paid.publish()
    await world.until(() => seen.length === 1)
    expect(seen).toEqual(['here'])
  })
})

describe('a subscriber with a handler for each event', () => {
  test('runs the one of the event', async () => {
    const { hf, world } = alone()
    const seen: string[] = []
    const opened = hf.event('pr.opened', number)
    const closed = hf.event('pr.closed')
    hf.subscribe({
      name: 'triage',
      to: [opened, closed],
      on: {
        'pr.opened': ({ input }) => void seen.push(`opened ${input.data.number}`),
        'pr.closed': ({ input }) => void seen.push(input.name),
      },
    })
    await hf.work()
    await opened.publish({ number: '7' })
    await closed.publish()
    await world.until(() => seen.length === 2)
    expect(seen.sort()).toEqual(['opened 7', 'pr.closed'])
  })

  test('fails for good on an event that has none, and names those that there are', async () => {
    const { hf, world, told } = alone()
    const merged = hf.event('pr.merged')
    hf.subscribe({ name: 'triage', to: 'pr.*', on: { 'pr.opened': run, 'pr.closed': run } })
    await hf.work()
    await merged.publish()
    await world.until(() => told.of('job.failed').length === 1)
    expect(told.of('job.failed')).toMatchObject([
      {
        final: true,
        kind: 'permanent',
        error: {
          message: 'Subscriber "triage" has no handler for event "pr.merged"; it has: pr.opened, pr.closed.',
        },
      },
    ])
  })
})

describe('a subscriber that cannot work', () => {
  test.each([
    ['no name', { to: 'a', run }, 'HF_BAD_JOB', /job name/],
    ['nothing to listen to', { name: 's', to: [], run }, 'HF_BAD_JOB', /nothing/],
    ['no `to`', { name: 's', run }, 'HF_BAD_PATTERN', /undefined/],
    ['a bad pattern', { name: 's', to: 'a.**.b', run }, 'HF_BAD_PATTERN', /a\.\*\*\.b/],
    ['a bad pattern among others', { name: 's', to: ['a', 'b..c'], run }, 'HF_BAD_PATTERN', /b\.\.c/],
    ['an event that is none', { name: 's', to: { name: 'a b' }, run }, 'HF_BAD_EVENT', /a b/],
    ['no handler', { name: 's', to: 'a' }, 'HF_BAD_JOB', /either/],
    ['two kinds of handlers', { name: 's', to: 'a', run, on: { a: run } }, 'HF_BAD_JOB', /either/],
    ['a handler that is none', { name: 's', to: 'a', on: { a: 1 } }, 'HF_BAD_JOB', /no function/],
    ['a handler of nothing it hears', { name: 's', to: 'a.*', on: { 'b.c': run } }, 'HF_BAD_JOB', /never/],
    ['a handler of a pattern', { name: 's', to: 'a.*', on: { 'a.*': run } }, 'HF_BAD_EVENT', /a\.\*/],
    ['an event without its handler', { name: 's', to: ['a', 'b'], on: { a: run } }, 'HF_BAD_JOB', /"b"/],
    ['no handlers at all', { name: 's', to: 'a.*', on: {} }, 'HF_BAD_JOB', /no handlers/],
    ['a unique key', { name: 's', to: 'a', unique: run, run }, 'HF_BAD_JOB', /`subscribe\(\)\.unique`/],
    ['a queue that nobody declared', { name: 's', to: 'a', queue: 'mial', run }, 'HF_UNKNOWN_QUEUE', /mial/],
  ])('is refused: %s', (_, definition, code, message) => {
    const world = alone()
    expect(() => world.hf.subscribe(definition as never)).toThrow(
      expect.objectContaining({ code, message: expect.stringMatching(message), hint: expect.any(String) }),
    )
    expect(world.line.calls).toEqual([])
  })

  test('has the name of a job', () => {
    const { hf } = alone()
    hf.job({ name: 'taken', run })
    expect(() => hf.subscribe({ name: 'taken', to: 'a', run })).toThrow(
      expect.objectContaining({ code: 'HF_DUPLICATE_JOB' }),
    )
  })
})
