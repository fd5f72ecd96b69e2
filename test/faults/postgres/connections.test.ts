/** The way to the server breaks, for all or for one, and comes back. Judged by the history checker. */
import { afterEach, beforeEach, describe, expect, test, type TestContext } from 'vitest'
import { withClient } from '../../support/servers/client.ts'
import { freshDatabase, portOf, sharedPostgres, type Database } from '../../support/servers/database.ts'
import { startProxy, type TcpProxy } from '../../support/servers/tcp-proxy.ts'
import { ENQUEUE_MS, RECLAIM_MS, startFleet, type Fleet } from './support/fleet.ts'

let database: Database
let proxy: TcpProxy
let fleet: Fleet | undefined

beforeEach(async () => {
  database = await freshDatabase(sharedPostgres(18))
  proxy = await startProxy(portOf(database.url))
})

afterEach(async () => {
  await fleet?.close()
  fleet = undefined
  await proxy.close()
  await database.drop()
})

async function start(queryTimeoutMs?: number): Promise<Fleet> {
  const options = queryTimeoutMs === undefined ? {} : { queryTimeoutMs }
  fleet = await startFleet({ url: database.url, lineUrl: proxy.url(database.url), ...options })
  await fleet.progress(30)
  return fleet
}

/** Ends the sessions of the database whose last statement is like this, all but our own. */
async function terminate(like: string): Promise<number> {
  const { rows } = await withClient(database.url, (client) =>
    client.query<{ n: number }>(
      `select count(pg_terminate_backend(pid))::int as n from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and query ilike $1`,
      [like],
    ),
  )
  return rows[0]?.n ?? 0
}

/** Breaks something ten times, each time when all workers are at work again. */
async function repeatedly(running: Fleet, { annotate }: TestContext, kind: string, harm: () => unknown) {
  const took: number[] = []
  for (let round = 0; round < 10; round++) {
    running.fault(kind)
    await harm()
    running.up()
    took.push(await running.reclaimed())
    await running.progress(10)
  }
  await annotate(`claims again after ${Math.round(Math.max(...took))} ms at most`)
  expect(Math.max(...took)).toBeLessThan(RECLAIM_MS)
}

describe('connections that drop', () => {
  test.for([['lose nothing, and no enqueue fails']])('%s', async (_, context) => {
    const running = await start()
    await repeatedly(running, context, 'connections cut', () => proxy.cutAll())
    expect(running.refused).toEqual([])
    const { verdict } = await running.judge()
    expect(verdict.counted.settlesAlready).toBeGreaterThan(0)
  })
})

describe('connections that the server terminates', () => {
  test('lose nothing, and no enqueue fails', async (context) => {
    const running = await start()
    await repeatedly(running, context, 'backends terminated', async () => {
      expect(await terminate('%')).toBeGreaterThan(0)
    })
    expect(running.refused).toEqual([])
    await running.judge()
  })
})

describe('connections that go silent for longer than a statement may take', () => {
  test.for([
    { name: 'a short time', queryTimeoutMs: 1_000 },
    { name: 'the default', queryTimeoutMs: 30_000 },
  ])('are replaced: $name', async ({ queryTimeoutMs }, { annotate }) => {
    const running = await start(queryTimeoutMs)
    running.down()
    proxy.mode = 'silent'
    const { error, ms } = await running.enqueueInVain()
    expect(error).toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
    expect(ms).toBeLessThan(ENQUEUE_MS + 1_000)
    proxy.mode = 'pass'
    running.up()
    const tookMs = await running.reclaimed()
    await annotate(`claims again after ${Math.round(tookMs)} ms`)
    console.log(queryTimeoutMs, tookMs)
    expect(tookMs).toBeLessThan(RECLAIM_MS)
    await running.progress(30)
    await running.judge()
  })
})

describe('a worker that does not hear of new jobs any more', () => {
  test('finds them by polling, and hears again when it can', async () => {
    const running = await start()
    for (const node of running.workers) expect(running.takeHints(node)).toBeGreaterThan(0)
    running.fault('listening connections ended')
    // Those that exist go on, but no listener comes back.
    proxy.mode = 'refuse'
    expect(await terminate('%listen "holdfast%')).toBeGreaterThanOrEqual(running.workers.length)
    for (const node of running.workers) running.takeHints(node)
    await running.progress(50)
    for (const node of running.workers) expect(running.takeHints(node)).toBe(0)
    proxy.mode = 'pass'
    await running.until('every worker to be woken again', () => {
      return running.workers.every((node) => running.takeHints(node) > 0)
    })
    await running.judge()
  })
})
