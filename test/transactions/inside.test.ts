/** Inside commit(): what does not go through the transaction is refused, and nothing else is. */
import { holdfast, type CommitTx } from 'holdfast'
import { postgresStore } from 'holdfast/postgres'
import type { Store } from 'holdfast/store'
import { testQueue } from 'holdfast/testing'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { freshDatabase, sharedPostgres, type Database } from '../support/servers/database.ts'
import { deferred, thrownBy } from '../support/virtual.ts'

const REFUSED = { code: 'HF_INSIDE_TRANSACTION' }

let database: Database
beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
})
afterAll(() => database.drop())

let schemas = 0
const STORES: readonly [name: string, open: () => Store][] = [
  ['PostgreSQL', () => postgresStore({ url: database.url, schema: `inside_${schemas++}` })],
]

const opened: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const hf of opened.splice(0)) await hf.close()
})

function setUp(store: Store, concurrency = 10) {
  const hf = holdfast({ store, logger: false })
  opened.push(hf)
  const other = hf.job({ name: 'other', queue: 'default', run: () => 'done' })
  let write: (tx: CommitTx) => Promise<unknown> = () => Promise.resolve()
  const pay = hf.job({
    name: 'pay',
    retry: { attempts: 1 },
    run: ({ commit }) => commit((tx) => write(tx)),
  })
  /** Runs it inside the commit of a job, and resolves to what it came to. */
  const inside = async <T>(work: (tx: CommitTx) => Promise<T>): Promise<T> => {
    const came = deferred<T>()
    write = async (tx) => {
      try {
        came.resolve(await work(tx))
      } catch (error) {
        came.reject(error)
      }
    }
    await (await pay.enqueue()).result()
    return came.promise
  }
  return { hf, other, pay, inside, start: () => hf.work({ concurrency }) }
}

describe.each(STORES)('inside commit() on %s', (_name, open) => {
  test('every call that forgets the transaction is refused at once, and the commit goes on', async () => {
    const { hf, other, inside, start } = setUp(open())
    const paid = hf.event('order.paid')
    const queue = hf.queue('default')
    const handle = await other.enqueue(undefined, { in: '1h' })
    await other.schedule('nightly', { cron: '0 3 * * *' })
    const schedule = await hf.schedules.get('nightly')
    await start()
    const calls: Record<string, () => Promise<unknown>> = {
      enqueue: () => other.enqueue(),
      'job.enqueueMany': () => other.enqueueMany([undefined]),
      'hf.enqueueMany': () => hf.enqueueMany([other.with()]),
      publish: () => paid.publish(),
      publishMany: () => paid.publishMany([undefined]),
      state: () => handle.state(),
      result: () => handle.result(),
      cancel: () => handle.cancel(),
      get: () => other.get(handle.id),
      edit: () => other.edit(handle.id, { priority: 'high' }),
      schedule: () => other.schedule('hourly', { every: '1h' }),
      'schedule.run': () => schedule!.run(),
      'schedules.list': () => hf.schedules.list(),
      'deadLetters.list': () => hf.deadLetters.list(),
      queues: () => hf.queues(),
      pause: () => hf.pause('default'),
      send: () => queue.send({}),
      work: () => hf.work(),
    }
    for (const [name, call] of Object.entries(calls))
      expect(await inside(() => thrownBy(call())), name).toMatchObject(REFUSED)
    expect(await handle.state()).toBe('scheduled')
    await handle.cancel()
    await other.unschedule('nightly')
  })

  test('what goes through the transaction is done', async () => {
    const { hf, other, inside, start } = setUp(open())
    const paid = hf.event('order.paid')
    await hf.subscribe({ name: 'receipt', to: paid, run: () => 'sent' }).subscribe()
    await start()
    const handle = await inside(async (tx) => {
      await other.enqueueMany([undefined], { tx })
      expect((await paid.publish(undefined, { tx })).subscribers).toEqual(['receipt'])
      return other.enqueue(undefined, { tx })
    })
    expect(await handle.result()).toBe('done')
  })

  test('another commit is refused', async () => {
    const hf = holdfast({ store: open(), logger: false })
    opened.push(hf)
    const job = hf.job({
      name: 'twice',
      run: ({ commit }) => commit(async () => (await thrownBy(commit(async () => 1))) as { code: string }),
    })
    await hf.work()
    expect(await (await job.enqueue()).result()).toMatchObject(REFUSED)
  })

  test('calls from elsewhere are not refused meanwhile, nor are those behind a refused one', async () => {
    const { other, inside, start } = setUp(open())
    await start()
    const [begun, refused] = [deferred(), deferred()]
    const committing = inside(async () => {
      begun.resolve()
      const error = await thrownBy(other.enqueue())
      refused.resolve()
      return error
    })
    await begun.promise
    const elsewhere = Array.from({ length: 20 }, () => other.enqueue())
    await refused.promise
    const handles = await Promise.all([...elsewhere, other.enqueue()])
    expect(await committing).toMatchObject(REFUSED)
    for (const handle of handles) expect(await handle.result()).toBe('done')
  })

  test('what it leaves behind is free once the transaction is over', async () => {
    const { other, inside, start } = setUp(open())
    await start()
    const over = deferred()
    const late = deferred<unknown>()
    await inside(async () => {
      void over.promise.then(async () => late.resolve(await other.enqueue()))
    })
    over.resolve()
    expect(await late.promise).toMatchObject({ outcome: 'inserted' })
  })
})

test('ten handlers that forget { tx } at once fail at once, and hold up nobody', async () => {
  const { hf, other } = setUp(postgresStore({ url: database.url, schema: `inside_${schemas++}` }))
  const forgets = hf.job({
    name: 'forgets',
    retry: { attempts: 1 },
    run: ({ commit }) => commit(() => other.enqueue()),
  })
  const codes: unknown[] = []
  const down: unknown[] = []
  hf.on('job.failed', ({ error }) => void codes.push((error as { code?: unknown }).code))
  hf.on('store.down', (event) => void down.push(event))
  const handles = await Promise.all(Array.from({ length: 10 }, () => forgets.enqueue()))
  await hf.work({ concurrency: 10 })
  const fine = await Promise.all(Array.from({ length: 10 }, () => other.enqueue()))
  for (const handle of handles) await thrownBy(handle.result())
  for (const handle of fine) expect(await handle.result()).toBe('done')
  expect(codes).toEqual(Array.from({ length: 10 }, () => 'HF_INSIDE_TRANSACTION'))
  expect(down).toEqual([])
})

test('a listener that hears of what is logged inside is not part of the transaction', async () => {
  const { hf, other } = setUp(postgresStore({ url: database.url, schema: `inside_${schemas++}` }))
  const alarmed = deferred<unknown>()
  hf.on('job.log', async () => alarmed.resolve(await other.enqueue().catch((error: unknown) => error)))
  const logs = hf.job({
    name: 'logs',
    run: ({ commit, log, progress, job }) =>
      commit(async () => {
        log.info('inside')
        progress(1, 2)
        expect(await alarmed.promise).toMatchObject({ outcome: 'inserted' })
        // The worker writes what was said while the transaction is open.
        const handle = await outside.get(job.id)
        let said = await handle!.read()
        while (said.progress === null) said = await handle!.read()
        expect(said.log).toMatchObject([{ message: 'inside' }])
      }),
  })
  const second = holdfast({
    store: postgresStore({ url: database.url, schema: `inside_${schemas - 1}` }),
    logger: false,
  })
  opened.push(second)
  const outside = second.job({ name: 'logs', run: () => undefined })
  await hf.work()
  await (await logs.enqueue()).result()
})

test('the test kit refuses it as well, and takes what goes through the transaction', async () => {
  const hf = holdfast({ store: 'memory:', logger: false })
  const other = hf.job({ name: 'other', run: () => undefined })
  const paid = hf.event('order.paid')
  hf.subscribe({ name: 'receipt', to: paid, run: () => undefined })
  const pay = hf.job({
    name: 'pay',
    run: ({ commit }) =>
      commit(async (tx) => {
        await other.enqueue(undefined, { tx })
        await paid.publish(undefined, { tx })
        return ((await thrownBy(other.enqueue())) as { code: string }).code
      }),
  })
  await using queue = await testQueue(hf)
  expect(await queue.run(pay)).toEqual({ state: 'completed', result: 'HF_INSIDE_TRANSACTION' })
  expect(await queue.enqueued(other)).toHaveLength(1)
})
