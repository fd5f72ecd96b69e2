/** How many connections to PostgreSQL a process has, counted on the server. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { holdfast } from 'holdfast'
import { postgresStore, type PostgresStoreOptions } from 'holdfast/postgres'
import pg from 'pg'
import { freshDatabase, portOf, sharedPostgres, type Database } from './support/servers/database.ts'
import { startProxy } from './support/servers/tcp-proxy.ts'
import { Signal } from './support/signal.ts'
import { eventually } from './support/until.ts'
import { pgBouncerMissing, startPgBouncer } from './support/servers/pgbouncer.ts'

/** Nothing is found by polling: a job that runs in time was announced by a wake-up. */
const NEVER = { poll: '1h' } as const

let database: Database
let watcher: pg.Client
/** Its connections do not count. */
let producer: ReturnType<typeof open>
const opened: { close(): Promise<void> }[] = []

beforeAll(async () => {
  watcher = new pg.Client({ connectionString: sharedPostgres(18) })
  await watcher.connect()
})

afterAll(() => watcher.end())

beforeEach(async () => {
  database = await freshDatabase(sharedPostgres(18))
  const url = new URL(database.url)
  url.searchParams.set('application_name', 'producer')
  const pool = new pg.Pool({ connectionString: url.href, max: 2 })
  pool.on('connect', (client) => client.on('error', () => undefined))
  opened.push({ close: () => pool.end() })
  producer = open({ pool, onNotice: () => undefined })
})

afterEach(async () => {
  // The last one first: it may need those before it.
  for (const one of opened.splice(0).reverse()) await one.close()
  await database.drop()
})

function open(options: PostgresStoreOptions = { url: database.url }) {
  // Counting connections all the time keeps the server busy.
  const hf = holdfast({ store: postgresStore(options), logger: false, timeout: '30s' })
  opened.push(hf)
  return hf
}

async function connections(): Promise<number> {
  const { rows } = await watcher.query<{ n: number }>(
    `select count(*)::int as n from pg_stat_activity where datname = $1 and application_name like 'holdfast%'`,
    [new URL(database.url).pathname.slice(1)],
  )
  return rows[0]!.n
}

async function endConnections(): Promise<void> {
  await watcher.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and application_name like 'holdfast%'`,
    [new URL(database.url).pathname.slice(1)],
  )
}

/** The most that were seen at a time while it went on. */
async function mostDuring(
  work: Promise<unknown>,
  count: () => Promise<number> | number = connections,
): Promise<number> {
  let most = 0
  let isOver = false
  const over = work.finally(() => (isOver = true))
  while (!isOver) {
    most = Math.max(most, await count())
    await new Promise(setImmediate)
  }
  await over
  return most
}

function gate(): { readonly opened: Promise<void>; open(): void } {
  let openIt = (): void => undefined
  return { opened: new Promise((resolve) => (openIt = resolve)), open: () => openIt() }
}

describe('a worker process', { timeout: 60_000 }, () => {
  test('has three connections at most, at work and idle', async () => {
    const hf = open()
    const job = hf.job({ name: 'job', input: z.number(), run: ({ input }) => input })
    await hf.work({ concurrency: 50 })
    const work = async (): Promise<void> => {
      const handles = await Promise.all(Array.from({ length: 200 }, (_, n) => job.enqueue(n)))
      const asked = Array.from({ length: 20 }, () => hf.queues())
      await Promise.all([...asked, ...handles.map((handle) => handle.result())])
    }
    expect(await mostDuring(work())).toBe(3)
    await eventually(async () => expect(await connections()).toBe(3))
    await hf.close()
    await eventually(async () => expect(await connections()).toBe(0))
  })

  test('is woken at once all the same, also after its connections were lost', async () => {
    const hf = open()
    const news = new Signal()
    const ran: number[] = []
    const run = ({ input }: { input: number }): void => {
      ran.push(input)
      news.notify()
    }
    hf.job({ name: 'job', input: z.number(), run })
    const job = producer.job({ name: 'job', input: z.number(), run: () => undefined })
    await hf.work(NEVER)
    for (let n = 0; n < 10; n++) {
      await job.enqueue(n)
      await news.until(() => expect(ran).toHaveLength(n + 1))
    }
    await endConnections()
    // It may be deaf for a moment; then it hears of every job again.
    await eventually(async () => {
      const before = ran.length
      await job.enqueue(before)
      await news.until(() => expect(ran.length).toBeGreaterThan(before), 500)
    })
    await eventually(async () => expect(await connections()).toBeLessThanOrEqual(3))
    const before = ran.length
    await job.enqueue(before)
    await news.until(() => expect(ran.length).toBeGreaterThan(before))
  })

  test('has one more for each open commit(), up to `commitConnections`, and everything else goes on', async () => {
    const hf = open()
    const end = gate()
    const news = new Signal()
    let begun = 0
    const pay = hf.job({
      name: 'pay',
      run: ({ commit }) =>
        commit(async (tx) => {
          await tx.query('select 1')
          begun++
          news.notify()
          await end.opened
        }),
    })
    const other = hf.job({ name: 'other', run: () => 'done' })
    await hf.work({ concurrency: 30 })
    const paid = await Promise.all(Array.from({ length: 20 }, () => pay.enqueue()))
    await news.until(() => expect(begun).toBe(5))
    for (let times = 0; times < 10; times++) {
      const handle = await other.enqueue()
      expect(await handle.result({ timeout: '20s' })).toBe('done')
    }
    expect(begun).toBe(5)
    expect(await connections()).toBe(8)
    end.open()
    await Promise.all(paid.map((handle) => handle.result()))
    await eventually(async () => expect(await connections()).toBe(3))
  })

  test('has what it is allowed, and no more', async () => {
    const hf = open({ url: database.url, connections: 1, commitConnections: 2 })
    const job = hf.job({
      name: 'job',
      input: z.number(),
      run: ({ commit }) => commit((tx) => tx.query('select pg_sleep(0.01)').then(() => undefined)),
    })
    await hf.work({ concurrency: 20 })
    const work = async (): Promise<void> => {
      const handles = await Promise.all(Array.from({ length: 100 }, (_, n) => job.enqueue(n)))
      await Promise.all(handles.map((handle) => handle.result()))
    }
    expect(await mostDuring(work())).toBeLessThanOrEqual(4)
  })

  test('behind a pooler in transaction mode has three as well, and says once that it hears nothing', async ({
    skip,
  }) => {
    const bouncer = await startPgBouncer({ port: portOf(database.url) })
    if (bouncer === null) return skip(pgBouncerMissing())
    const name = new URL(database.url).pathname.slice(1)
    const proxy = await startProxy(portOf(bouncer.url(name)))
    opened.push({ close: () => bouncer.dispose() }, proxy)
    const notices: string[] = []
    const hf = open({ url: proxy.url(bouncer.url(name)), onNotice: (line) => notices.push(line) })
    const job = hf.job({ name: 'job', run: () => 'done' })
    await hf.work({ poll: 100 })
    const work = async (): Promise<void> => {
      const handles = await Promise.all(Array.from({ length: 100 }, () => job.enqueue()))
      await Promise.all(handles.map((handle) => handle.result()))
    }
    expect(await mostDuring(work(), () => proxy.connections)).toBeLessThanOrEqual(3)
    expect(notices.filter((line) => line.includes('LISTEN'))).toHaveLength(1)
  })
})

describe('a process that only enqueues', () => {
  test('has two connections at most', async () => {
    const hf = open()
    const job = hf.job({ name: 'job', input: z.number(), run: () => undefined })
    const work = Promise.all(Array.from({ length: 500 }, (_, n) => job.enqueue(n)))
    expect(await mostDuring(work)).toBeLessThanOrEqual(2)
  })
})
