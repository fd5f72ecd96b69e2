/** The server stops, becomes read-only or runs out of connections, and recovers. The history checker judges. */
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test, type TestContext } from 'vitest'
import { withClient } from '../../support/servers/client.ts'
import { startPostgres, type PostgresServer } from '../../support/servers/postgres-server.ts'
import type { HistoryEvent } from '../../checker/history.ts'
import { PATIENT, type Fleet } from '../support/fleet.ts'
import { setStage, type Stage } from './support/stage.ts'

const MAX_CONNECTIONS = 40

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres({
    version: 18,
    settings: {
      // Unsynced writes survive unless the machine crashes. Commits that are not even written would be lost here, too.
      fsync: 'off',
      // With 'on', claims do not wait for the log, and the judge would miss the ones that an immediate stop loses.
      synchronous_commit: 'local',
      max_connections: String(MAX_CONNECTIONS),
      // During recovery it accepts no connections, not even for reads.
      hot_standby: 'off',
    },
  })
})
afterAll(() => server.dispose())
// Restore the server if a test failed halfway.
afterEach(async () => {
  if (!server.running) await server.start()
  await setReadOnly(false)
})

const start = (context: TestContext): Promise<Stage> => setStage(context, { serverUrl: server.url() })

const run = (sql: string): Promise<unknown> => withClient(server.url(), (client) => client.query(sql))

async function setReadOnly(on: boolean): Promise<void> {
  await run(
    `alter system ${on ? 'set default_transaction_read_only = on' : 'reset default_transaction_read_only'}`,
  )
  await run('select pg_reload_conf()')
}

/** While the store is down, an enqueue fails at its deadline, with the reason. */
async function expectEnqueuesToFail(fleet: Fleet): Promise<void> {
  expect(await fleet.enqueueInVain()).toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
}

/** After the store is back, every worker claims again in time and nothing was lost. */
async function expectRecovery(fleet: Fleet, { annotate }: TestContext): Promise<readonly HistoryEvent[]> {
  fleet.up()
  await annotate(`claims again after ${Math.round(await fleet.reclaimed())} ms`)
  await fleet.progress(30)
  const { events } = await fleet.judge()
  return events
}

function refusals(events: readonly HistoryEvent[], like: RegExp): number {
  return events.filter((event) => event.type === 'failed' && like.test(event.error)).length
}

describe('a server that stops', PATIENT, () => {
  test.for(['fast', 'immediate'] as const)('%s, and starts again', async (mode, context) => {
    const { fleet } = await start(context)
    fleet.down()
    await server.stop(mode)
    await expectEnqueuesToFail(fleet)
    await server.start()
    await expectRecovery(fleet, context)
  })
})

describe('a server that starts', PATIENT, () => {
  test('and accepts no connection before it has recovered', async (context) => {
    const { fleet } = await start(context)
    // A restore command that waits and fails makes the start take a while.
    await run(`alter system set restore_command = 'sleep 0.5; false'`)
    await run(`copy (select 1) to program 'cat > /dev/null; touch recovery.signal'`)
    fleet.down()
    await server.restart('immediate')
    await run('alter system reset restore_command')
    const events = await expectRecovery(fleet, context)
    expect(refusals(events, /the database system is (starting up|not)/)).toBeGreaterThan(0)
  })
})

describe('a server that is read-only', PATIENT, () => {
  test('takes writes again without a restart of any process', async (context) => {
    const { fleet } = await start(context)
    fleet.down()
    const before = fleet.refused.length
    await setReadOnly(true)
    // Sessions pick up the setting when the server signals them.
    await fleet.news.until(() => fleet.refused.length > before)
    await expectEnqueuesToFail(fleet)
    await setReadOnly(false)
    const events = await expectRecovery(fleet, context)
    expect(refusals(events, /read-only transaction/)).toBeGreaterThan(0)
  })
})

describe('a server that has no connection left', PATIENT, () => {
  test('is used again once others have closed theirs', async (context) => {
    const { fleet, proxy } = await start(context)
    await using others = await Crowd.gather()
    fleet.down()
    // Keep the fleet out until others have taken its connections.
    proxy.mode = 'refuse'
    proxy.cutAll()
    await others.fill()
    proxy.mode = 'pass'
    await expectEnqueuesToFail(fleet)
    await others.leave()
    const events = await expectRecovery(fleet, context)
    expect(refusals(events, /too many clients/)).toBeGreaterThan(0)
  })
})

/** Connections of other programs. */
class Crowd {
  readonly #clients: Client[] = []

  /** Opens the first connection, which counts the others. */
  static async gather(): Promise<Crowd> {
    const crowd = new Crowd()
    await crowd.#join()
    return crowd
  }

  /** Takes every free connection. */
  async fill(): Promise<void> {
    while (await this.#join());
    // Sessions that were about to end may have made room.
    await this.#isFull()
  }

  async leave(): Promise<void> {
    await Promise.all(this.#clients.splice(0).map((client) => client.end().catch(() => undefined)))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.leave()
  }

  async #isFull(): Promise<void> {
    const sql = `select count(*)::int as n from pg_stat_activity where backend_type = 'client backend'`
    const count = async (): Promise<number> => {
      const result = await this.#clients[0]?.query<{ n: number }>(sql)
      return result?.rows[0]?.n ?? 0
    }
    while ((await count()) < MAX_CONNECTIONS) await this.#join()
  }

  async #join(): Promise<boolean> {
    const client = new Client({ connectionString: server.url() })
    client.on('error', () => undefined)
    try {
      await client.connect()
      this.#clients.push(client)
      return true
    } catch {
      return false
    }
  }
}
