/**
 * A fleet on a Redis of its own, behind a line of its own: all that one test needs, and gone when it is over.
 *
 * Redis tells nobody what it did, so that the checker has what clients and workers asked and were answered, what handlers
 * saw, and the store's jobs and counts at the end. By that it holds in full: S1, S2, S12, S14 and S15, L2 and L4. Of S3,
 * S4, S5, S6, S7, S16, L1 and L3 it sees what answers give away: a lease that no answer told of, or a settle that was
 * accepted without one, is beyond it; `fence-book.ts` reads those off the append-only file. S11 and S17 need the store's
 * moves, and are held on Redis by the conformance suite alone.
 */
import type { TestContext } from 'vitest'
import { redisStore, type RedisStoreOptions } from '../../../../src/stores/redis/index.ts'
import { startRedis, type RedisServer } from '../../../support/servers/redis-server.ts'
import { startProxy, type TcpProxy } from '../../../support/servers/tcp-proxy.ts'
import { startFleet, type Fleet } from '../../support/fleet.ts'

/** Settings for a server whose append-only file is a whole record. */
export const KEPT = { appendonly: 'yes', 'auto-aof-rewrite-percentage': '0' }

export interface Stage {
  readonly server: RedisServer
  readonly proxy: TcpProxy
  readonly fleet: Fleet
}

export interface StageOptions {
  /** As in redis.conf. */
  readonly settings?: Readonly<Record<string, string>>
  /** How long one command may take. @default 2_000 */
  readonly commandTimeoutMs?: number
  /** Its number. @default 0 */
  readonly database?: number
}

/** With some jobs done already: everybody is at work. */
export async function setStage(context: TestContext, options: StageOptions = {}): Promise<Stage> {
  const { settings = {}, commandTimeoutMs = 2_000, database = 0 } = options
  const server = await startRedis({ settings })
  const proxy = await startProxy(server.port)
  const url = `${server.url}/${database}`
  const line = { url: proxy.url(url), commandTimeoutMs }
  const fleet = await setFleet(context, { direct: { url }, line }, async () => {
    await proxy.close()
    await server.dispose()
  })
  return { server, proxy, fleet }
}

export interface Ways {
  /** Past the line that breaks. */
  readonly direct: RedisStoreOptions
  readonly line: RedisStoreOptions
}

/** The same on servers of the test's own; `dispose` follows the end of the fleet. */
export async function setFleet(
  { onTestFinished }: TestContext,
  { direct, line }: Ways,
  dispose: () => Promise<void>,
): Promise<Fleet> {
  const onNotice = (): void => undefined
  const store = redisStore({ ...direct, onNotice })
  await store.open()
  const fleet = await startFleet({
    direct: store,
    byLine: () => redisStore({ ...line, onNotice }),
    kept: () => Promise.resolve(null),
  })
  onTestFinished(async () => {
    await fleet.close()
    await dispose()
  })
  await fleet.progress(30)
  return fleet
}
