/** A fleet on its own database, connected through its own proxy. Removed when the test ends. */
import type { TestContext } from 'vitest'
import { postgresStore } from '../../../../src/stores/postgres/index.ts'
import { withClient } from '../../../support/servers/client.ts'
import { freshDatabase, portOf, type Database } from '../../../support/servers/database.ts'
import { startProxy, type TcpProxy } from '../../../support/servers/tcp-proxy.ts'
import { startFleet, type Fleet } from '../../support/fleet.ts'
import { installAudit, readAudit } from './audit.ts'

export interface Stage {
  readonly database: Database
  readonly proxy: TcpProxy
  readonly fleet: Fleet
}

export interface StageOptions {
  /** The server on which to create the database. */
  readonly serverUrl: string
  /** Settings of the database: `deadlock_timeout = '20ms'`. */
  readonly settings?: readonly string[]
  /** Timeout of one statement. @default 2_000 */
  readonly queryTimeoutMs?: number
  /** Deadline of a client's call, retries included. @default 2_000 */
  readonly callMs?: number
}

/** Resolves after some jobs have been run, when all workers are busy. */
export async function setStage(
  { onTestFinished }: TestContext,
  { serverUrl, settings = [], queryTimeoutMs = 2_000, callMs }: StageOptions,
): Promise<Stage> {
  const database = await freshDatabase(serverUrl)
  const name = new URL(database.url).pathname.slice(1)
  for (const setting of settings)
    await withClient(serverUrl, (client) => client.query(`alter database ${name} set ${setting}`))
  const proxy = await startProxy(portOf(database.url))
  const onNotice = (): void => undefined
  const direct = postgresStore({ url: database.url, onNotice })
  await direct.open()
  await installAudit(database.url)
  const fleet = await startFleet({
    direct,
    callMs,
    byLine: () => postgresStore({ url: proxy.url(database.url), queryTimeoutMs, onNotice }),
    kept: (history) => readAudit(database.url, (...place) => history.settlementOf(...place)),
  })
  onTestFinished(async () => {
    await fleet.close()
    await proxy.close()
    await database.drop()
  })
  await fleet.progress(30)
  return { database, proxy, fleet }
}
