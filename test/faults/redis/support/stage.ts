/**
 * A fleet on its own Redis, connected through its own proxy. Removed when the test ends.
 *
 * Redis does not record its moves. The checker only has the requests and answers of clients and workers, what handlers saw,
 * and the jobs and counts at the end. With these it checks S1, S2, S12, S14, S15, L2 and L4 in full, and S3, S4, S5, S6, S7,
 * S16, L1 and L3 as far as answers show them: it cannot see a lease that no answer mentioned, or a settle that was accepted
 * without a lease. `fence-book.ts` reads those from the append-only file. S11 and S17 need the store's moves; on Redis only
 * the conformance suite covers them.
 */
import type { TestContext } from 'vitest'
import { redisStore, type RedisStoreOptions } from '../../../../src/stores/redis/index.ts'
import { startRedis, type RedisServer } from '../../../support/servers/redis-server.ts'
import { startProxy, type TcpProxy } from '../../../support/servers/tcp-proxy.ts'
import { startFleet, type Fleet } from '../../support/fleet.ts'

/** Settings for a server whose append-only file records every write. */
export const KEPT = { appendonly: 'yes', 'auto-aof-rewrite-percentage': '0' }

export interface Stage {
  readonly server: RedisServer
  readonly proxy: TcpProxy
  readonly fleet: Fleet
}

export interface StageOptions {
  /** As in redis.conf. */
  readonly settings?: Readonly<Record<string, string>>
  /** Timeout of one command. @default 2_000 */
  readonly commandTimeoutMs?: number
  /** Number of the database. @default 0 */
  readonly database?: number
}

/** Resolves after some jobs have been run, when all workers are busy. */
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
  /** Bypasses the connection that breaks. */
  readonly direct: RedisStoreOptions
  readonly line: RedisStoreOptions
}

/** The same on servers that the test starts. `dispose` is called after the fleet is closed. */
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
