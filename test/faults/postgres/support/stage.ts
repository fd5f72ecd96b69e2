/** A fleet on a database of its own, behind a line of its own: all that one test needs, and gone when it is over. */
import type { TestContext } from 'vitest'
import { withClient } from '../../../support/servers/client.ts'
import { freshDatabase, portOf, type Database } from '../../../support/servers/database.ts'
import { startProxy, type TcpProxy } from '../../../support/servers/tcp-proxy.ts'
import { startFleet, type Fleet, type FleetOptions } from './fleet.ts'

export interface Stage {
  readonly database: Database
  readonly proxy: TcpProxy
  readonly fleet: Fleet
}

export interface StageOptions extends Pick<FleetOptions, 'queryTimeoutMs'> {
  /** Where to put the database. */
  readonly serverUrl: string
  /** Settings of the database: `deadlock_timeout = '20ms'`. */
  readonly settings?: readonly string[]
}

/** For tests with a stage: some seconds each, but a machine that is strained is no failure. */
export const PATIENT = { timeout: 300_000 }

/** With some jobs done already: everybody is at work. */
export async function setStage(
  { onTestFinished }: TestContext,
  { serverUrl, settings = [], ...options }: StageOptions,
): Promise<Stage> {
  const database = await freshDatabase(serverUrl)
  const name = new URL(database.url).pathname.slice(1)
  for (const setting of settings)
    await withClient(serverUrl, (client) => client.query(`alter database ${name} set ${setting}`))
  const proxy = await startProxy(portOf(database.url))
  const line = { url: database.url, lineUrl: proxy.url(database.url) }
  const fleet = await startFleet({ ...line, ...options })
  onTestFinished(async () => {
    await fleet.close()
    await proxy.close()
    await database.drop()
  })
  await fleet.progress(30)
  return { database, proxy, fleet }
}
