/** A fleet on a database of its own, behind a line of its own: all that one test needs, and gone when it is over. */
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
  /** Where to put the database. */
  readonly serverUrl: string
  /** Settings of the database: `deadlock_timeout = '20ms'`. */
  readonly settings?: readonly string[]
  /** How long one statement may take. @default 2_000 */
  readonly queryTimeoutMs?: number
  /** How long a client's call may take, tries and all. @default 2_000 */
  readonly callMs?: number
}

/** With some jobs done already: everybody is at work. */
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
