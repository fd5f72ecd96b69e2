import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Fatal } from '../errors.ts'
import { holdfast } from '../holdfast.ts'
import { testQueue } from './index.ts'

function mailer(options: { fail?: () => boolean } = {}) {
  const hf = holdfast({ logger: false, queues: { default: {}, mail: {} } })
  const sent: string[] = []
  const send = hf.job({
    name: 'send',
    queue: 'mail',
    input: z.object({ to: z.string(), greeting: z.string().default('hello') }),
    retry: { attempts: 3, delay: '1m', jitter: false },
    timeout: '30s',
    run({ input, signal }) {
      signal.throwIfAborted()
      if (options.fail?.()) throw new Error('mailbox full')
      sent.push(`${input.greeting} ${input.to}`)
      return { at: new Date(0) }
    },
  })
  return { hf, send, sent }
}

describe('a test queue', () => {
  test('runs one job through schema, handler and JSON, and says what became of it', async () => {
    const { hf, send, sent } = mailer()
    await using t = await testQueue(hf)
    expect(await t.run(send, { to: 'ada' })).toEqual({
      state: 'completed',
      result: { at: '1970-01-01T00:00:00.000Z' },
    })
    expect(sent).toEqual(['hello ada'])
  })

  test('fires schedules as time goes by, those of definitions too', async () => {
    const { hf, send, sent } = mailer()
    hf.job({ name: 'sweep', schedule: { cron: '0 1 * * *' }, run: () => void sent.push('swept') })
    await using t = await testQueue(hf)
    await send.schedule('hourly', { every: '1h', input: { to: 'ada' } })
    expect(await t.drain()).toMatchObject({ completed: 0 })
    expect(await t.drain({ until: '2030-01-01T03:30:00Z' })).toMatchObject({ completed: 4 })
    expect(sent.toSorted()).toEqual(['hello ada', 'hello ada', 'hello ada', 'swept'])
  })

  test('brings events to the subscribers that are defined, with no worker started', async () => {
    const { hf, send, sent } = mailer()
    const joined = hf.event('user.joined', z.object({ name: z.string() }))
    const greet = hf.subscribe({
      name: 'greet',
      to: joined,
      run: ({ input }) => send.enqueue({ to: input.data.name }).then(() => undefined),
    })
    await using t = await testQueue(hf, { deliver: 'twice' })
    expect(await joined.publish({ name: 'ada' })).toMatchObject({ subscribers: ['greet'] })
    expect(await t.enqueued(greet)).toMatchObject([{ input: { name: 'user.joined', data: { name: 'ada' } } }])
    await t.drain({ until: '2030-01-02T00:00:00Z' })
    expect(sent).toContain('hello ada')
    await greet.unsubscribe()
    await t.run(send, { to: 'bob' })
    // Also after a lost worker: nobody subscribes it again.
    expect(await joined.publish({ name: 'eve' })).toMatchObject({ subscribers: [] })
  })

  test('runs the job that was asked for, and leaves the others as they were', async () => {
    const { hf, send, sent } = mailer()
    await using t = await testQueue(hf)
    const waiting = await send.enqueue({ to: 'first' }, { priority: 'urgent' })
    await t.run(send, { to: 'second' })
    expect(sent).toEqual(['hello second'])
    expect(await waiting.state()).toBe('ready')
    expect((await t.enqueued(send)).map((job) => job.input)).toEqual([{ to: 'first' }])
    expect(await t.drain()).toEqual({ completed: 1, dead: 0, retried: 0 })
  })

  test('tells a retry from a dead letter', async () => {
    const { hf, send } = mailer({ fail: () => true })
    const doomed = hf.job({ name: 'doomed', run: () => Promise.reject(new Fatal('no such account')) })
    await using t = await testQueue(hf)
    expect(await t.run(send, { to: 'ada' })).toMatchObject({ state: 'retrying', retryInMs: 60_000 })
    const result = await t.run(doomed)
    expect(result.state === 'dead' && result.error.message).toBe('no such account')
  })

  test('drains what is due now; with a time, retries and delayed jobs up to then', async () => {
    let failures = 0
    const { hf, send, sent } = mailer({ fail: () => failures++ < 1 })
    await using t = await testQueue(hf, { start: '2031-01-01T00:00:00Z' })
    await send.enqueue({ to: 'ada' })
    await send.enqueue({ to: 'bob' }, { in: '1h' })
    await send.enqueue({ to: 'eve' }, { in: '2h' })
    expect(await t.drain()).toEqual({ completed: 0, dead: 0, retried: 1 })
    expect(await t.drain({ until: '2031-01-01T01:30:00Z' })).toEqual({ completed: 2, dead: 0, retried: 0 })
    expect(sent).toEqual(['hello ada', 'hello bob'])
    expect(t.clock.now()).toBe(Date.parse('2031-01-01T01:30:00Z'))
    expect(await t.enqueued(send)).toMatchObject([
      { input: { to: 'eve' }, runAt: new Date('2031-01-01T02:00:00Z') },
    ])
  })

  test('moves the clock without running anything', async () => {
    const { hf, send, sent } = mailer()
    await using t = await testQueue(hf)
    await send.enqueue({ to: 'ada' }, { in: '1h' })
    await t.advance('2h')
    expect(sent).toEqual([])
    await t.drain()
    expect(sent).toEqual(['hello ada'])
  })

  test('lets a timeout strike when the test moves the clock past it', async () => {
    const hf = holdfast({ logger: false })
    const slow = hf.job({
      name: 'slow',
      timeout: '10s',
      run: ({ signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
    })
    await using t = await testQueue(hf)
    const running = t.run(slow)
    await t.advance('11s')
    const result = await running
    expect(result.state === 'retrying' && result.error.message).toContain('longer than its timeout of 10s')
  })

  test('takes what is enqueued in a transaction, with a promise or without', async () => {
    const { hf, send, sent } = mailer()
    const once = hf.job({ name: 'once', unique: () => ({ key: 'the one' }), run: () => undefined })
    await using t = await testQueue(hf)
    const tx = { prepare: () => undefined, exec: () => undefined, close: () => undefined }
    const handle = send.enqueueSync({ to: 'ada' }, { tx })
    await send.enqueue({ to: 'bob' }, { tx })
    expect(once.enqueueSync(undefined, { tx }).outcome).toBe('inserted')
    expect(once.enqueueSync(undefined, { tx }).outcome).toBe('duplicate')
    expect(await handle.state()).toBe('ready')
    expect(await t.drain()).toEqual({ completed: 3, dead: 0, retried: 0 })
    expect(sent).toEqual(['hello ada', 'hello bob'])
  })

  test('delivers every job twice when asked to, so that a handler that is not idempotent shows', async () => {
    const { hf, send, sent } = mailer()
    const keys = new Set<string>()
    const charge = hf.job({ name: 'charge', run: ({ job }) => void keys.add(job.id) })
    await using t = await testQueue(hf, { deliver: 'twice' })
    await t.run(send, { to: 'ada' })
    await charge.enqueue()
    expect(await t.drain()).toEqual({ completed: 1, dead: 0, retried: 0 })
    expect(sent).toEqual(['hello ada', 'hello ada'])
    expect(keys.size).toBe(1)
  })

  test('gives the holdfast back on close, and refuses a second one before', async () => {
    const { hf, send } = mailer()
    const t = await testQueue(hf)
    await send.enqueue({ to: 'ada' })
    await expect(testQueue(hf)).rejects.toMatchObject({ code: 'HF_TEST_KIT' })
    await t.close()
    expect((await hf.queues()).every(({ counts }) => counts.ready === 0)).toBe(true)
    await hf.close()
  })

  test('ends with an error when a job never stops enqueueing itself', async () => {
    const hf = holdfast({ logger: false })
    const again: { enqueue(): Promise<unknown> } = hf.job({
      name: 'again',
      run: () => again.enqueue().then(() => undefined),
    })
    await using t = await testQueue(hf)
    await again.enqueue()
    await expect(t.drain()).rejects.toMatchObject({ code: 'HF_TEST_KIT' })
  })
})
