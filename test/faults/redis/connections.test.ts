/** The way to Redis breaks, for all or for one, and comes back. Judged by the history checker. */
import { describe, expect, test, type TestContext } from 'vitest'
import { redisMissing } from '../../support/servers/redis.ts'
import type { TcpProxy } from '../../support/servers/tcp-proxy.ts'
import { PATIENT, type Fleet } from '../support/fleet.ts'
import { until } from '../support/until.ts'
import { withRedis } from './support/commands.ts'
import { setStage } from './support/stage.ts'

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

/** All of that type but our own; tells how many. */
async function killClients(url: string, type: 'normal' | 'pubsub'): Promise<number> {
  return withRedis(url, async (redis) => Number(await redis.call('CLIENT', 'KILL', 'TYPE', type)))
}

describe.skipIf(redisMissing() !== '')('connections that drop', PATIENT, () => {
  test('lose nothing where the line is cut', async (context) => {
    const { fleet, proxy } = await setStage(context)
    await repeatedly(fleet, context, 'connections cut', () => proxy.cutAll())
    await fleet.judge()
  })

  test('lose nothing where the server ends them (CLIENT KILL)', async (context) => {
    const { fleet, server } = await setStage(context)
    await repeatedly(fleet, context, 'clients killed', async () => {
      expect(await killClients(server.url, 'normal')).toBeGreaterThan(0)
      await killClients(server.url, 'pubsub')
    })
    await fleet.judge()
  })
})

/** Until somebody has just come to where nobody answers: that one will be back the latest. */
async function connectionUnderWay(proxy: TcpProxy): Promise<void> {
  const { accepted } = proxy
  await until('a new connection', () => proxy.accepted > accepted)
}

describe.skipIf(redisMissing() !== '')('connections that hear nothing any more', PATIENT, () => {
  test.for([
    { name: 'silent for longer than a command may take', commandTimeoutMs: 1_000, database: 0 },
    // By default one may take ten seconds; the worker is back long before that.
    { name: 'silent for as long as nobody waits', commandTimeoutMs: 10_000, database: 0 },
    // Then a new connection has a word to say before it is one, as with a password.
    { name: 'silent from the first word on', commandTimeoutMs: 1_000, database: 1 },
  ])('are replaced: $name', async ({ commandTimeoutMs, database }, context) => {
    const { fleet, proxy } = await setStage(context, { commandTimeoutMs, database })
    fleet.down()
    proxy.mode = 'silent'
    expect(await fleet.enqueueInVain()).toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
    await connectionUnderWay(proxy)
    proxy.mode = 'pass'
    fleet.up()
    await context.annotate(`claims again after ${Math.round(await fleet.reclaimed())} ms`)
    await fleet.progress(30)
    await fleet.judge()
  })

  test('are replaced where the server was there all the while (half open)', async (context) => {
    const { fleet, proxy } = await setStage(context, { commandTimeoutMs: 10_000 })
    fleet.down()
    // Those that exist never speak again, closes included; new ones work.
    proxy.mode = 'silent'
    proxy.mode = 'pass'
    fleet.up()
    await context.annotate(`claims again after ${Math.round(await fleet.reclaimed())} ms`)
    await fleet.progress(30)
    await fleet.judge()
  })

  test('but listen: jobs are found by polling until they are back', async (context) => {
    const { fleet, proxy, server } = await setStage(context)
    for (const node of fleet.workers) expect(fleet.takeHints(node)).toBeGreaterThan(0)
    fleet.fault('listening connections ended')
    // Those that exist go on, but no listener comes back.
    proxy.mode = 'refuse'
    expect(await killClients(server.url, 'pubsub')).toBeGreaterThanOrEqual(fleet.workers.length)
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
