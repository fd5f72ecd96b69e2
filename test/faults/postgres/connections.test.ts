/** The way to the server breaks, for all or for one, and comes back. Judged by the history checker. */
import { describe, expect, test, type TestContext } from 'vitest'
import { withClient } from '../../support/servers/client.ts'
import { sharedPostgres } from '../../support/servers/database.ts'
import { PATIENT, type Fleet } from '../support/fleet.ts'
import { until } from '../support/until.ts'
import { setStage, type Stage } from './support/stage.ts'

const start = (context: TestContext, queryTimeoutMs?: number): Promise<Stage> =>
  setStage(context, {
    serverUrl: sharedPostgres(18),
    ...(queryTimeoutMs === undefined ? {} : { queryTimeoutMs }),
  })

/** Ends the sessions of a database whose last statement is like this, all but our own. */
async function terminate(url: string, like: string): Promise<number> {
  const { rows } = await withClient(url, (client) =>
    client.query<{ n: number }>(
      `select count(pg_terminate_backend(pid))::int as n from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and query ilike $1`,
      [like],
    ),
  )
  return rows[0]?.n ?? 0
}

const ROUNDS = 6

/** Breaks something again and again, each time when all workers are at work. No enqueue may fail by it. */
async function repeatedly(
  fleet: Fleet,
  { annotate }: TestContext,
  kind: string,
  harm: () => unknown,
): Promise<void> {
  const took: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    fleet.fault(kind)
    await harm()
    fleet.up()
    took.push(await fleet.reclaimed())
    await fleet.progress(10)
  }
  await annotate(`claims again after ${Math.round(Math.max(...took))} ms at most`)
  expect(fleet.refused).toEqual([])
}

describe.concurrent('connections that drop', PATIENT, () => {
  test('lose nothing where the line is cut', async (context) => {
    const { fleet, proxy } = await start(context)
    await repeatedly(fleet, context, 'connections cut', () => proxy.cutAll())
    await fleet.judge()
  })

  test('lose nothing where the server terminates them', async (context) => {
    const { fleet, database } = await start(context)
    await repeatedly(fleet, context, 'backends terminated', async () => {
      expect(await terminate(database.url, '%')).toBeGreaterThan(0)
    })
    await fleet.judge()
  })
})

describe.concurrent('connections that hear nothing any more', PATIENT, () => {
  test.for([
    { name: 'silent for longer than a statement may take', queryTimeoutMs: 1_000 },
    // By default one may take half a minute; the worker is back long before that.
    { name: 'silent for as long as nobody waits', queryTimeoutMs: 30_000 },
  ])('are replaced: $name', async ({ queryTimeoutMs }, context) => {
    const { fleet, proxy } = await start(context, queryTimeoutMs)
    fleet.down()
    proxy.mode = 'silent'
    expect(await fleet.enqueueInVain()).toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
    proxy.mode = 'pass'
    fleet.up()
    await context.annotate(`claims again after ${Math.round(await fleet.reclaimed())} ms`)
    await fleet.progress(30)
    await fleet.judge()
  })

  test('but listen: jobs are found by polling until they are back', async (context) => {
    const { fleet, proxy, database } = await start(context)
    for (const node of fleet.workers) expect(fleet.takeHints(node)).toBeGreaterThan(0)
    fleet.fault('listening connections ended')
    // Those that exist go on, but no listener comes back.
    proxy.mode = 'refuse'
    expect(await terminate(database.url, '%listen "holdfast%')).toBeGreaterThanOrEqual(fleet.workers.length)
    // What had been sent before may still arrive.
    await until('nobody to be woken any more', async () => {
      for (const node of fleet.workers) fleet.takeHints(node)
      await fleet.progress(10)
      return fleet.workers.every((node) => fleet.takeHints(node) === 0)
    })
    await fleet.progress(50)
    for (const node of fleet.workers) expect(fleet.takeHints(node)).toBe(0)
    proxy.mode = 'pass'
    const woken = new Set<string>()
    await until('every worker to be woken again', () => {
      for (const node of fleet.workers) if (fleet.takeHints(node) > 0) woken.add(node)
      return woken.size === fleet.workers.length
    })
    await fleet.judge()
  })
})
