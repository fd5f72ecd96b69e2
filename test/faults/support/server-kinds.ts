/** Every store whose server stands behind a connection that can break, each with how to break it. */
import type { TestContext } from 'vitest'
import { withClient } from '../../support/servers/client.ts'
import { sharedPostgres } from '../../support/servers/database.ts'
import { redisMissing } from '../../support/servers/redis.ts'
import type { TcpProxy } from '../../support/servers/tcp-proxy.ts'
import * as postgres from '../postgres/support/stage.ts'
import { withRedis } from '../redis/support/commands.ts'
import * as redis from '../redis/support/stage.ts'
import type { Fleet } from './fleet.ts'

export interface ServerStage {
  readonly fleet: Fleet
  /** The connection that can break. */
  readonly proxy: TcpProxy
  /** Make the server end every connection of the fleet. Resolves to how many there were. */
  readonly endAll: () => Promise<number>
  /** The same for the connections that listen for wake-ups. */
  readonly endListeners: () => Promise<number>
}

export interface ServerKind {
  readonly name: string
  /** Why the server is missing, or empty. */
  readonly missing: () => string
  /** How long a statement may take by default. */
  readonly defaultTimeoutMs: number
  /** A fleet on a server or database of its own. @default timeoutMs 2_000 */
  readonly setStage: (context: TestContext, timeoutMs?: number) => Promise<ServerStage>
}

export const SERVER_KINDS: readonly ServerKind[] = [
  {
    name: 'PostgreSQL',
    missing: () => '',
    defaultTimeoutMs: 30_000,
    async setStage(context, queryTimeoutMs) {
      const serverUrl = sharedPostgres(18)
      const timeout = queryTimeoutMs === undefined ? {} : { queryTimeoutMs }
      const { fleet, proxy, database } = await postgres.setStage(context, { serverUrl, ...timeout })
      return {
        fleet,
        proxy,
        endAll: () => endSessions(database.url, '%'),
        endListeners: () => endSessions(database.url, '%listen "holdfast%'),
      }
    },
  },
  onRedis('Redis', 0),
  // A new connection then has to select its database first, as it would have to send a password.
  onRedis('Redis, in database 1', 1),
]

function onRedis(name: string, database: number): ServerKind {
  return {
    name,
    missing: redisMissing,
    defaultTimeoutMs: 10_000,
    async setStage(context, commandTimeoutMs) {
      const timeout = commandTimeoutMs === undefined ? {} : { commandTimeoutMs }
      const { fleet, proxy, server } = await redis.setStage(context, { database, ...timeout })
      return {
        fleet,
        proxy,
        endAll: async () =>
          (await killClients(server.url, 'normal')) + (await killClients(server.url, 'pubsub')),
        endListeners: () => killClients(server.url, 'pubsub'),
      }
    },
  }
}

/** Ends the sessions of a database whose last statement matches, except our own. */
async function endSessions(url: string, like: string): Promise<number> {
  const { rows } = await withClient(url, (client) =>
    client.query<{ n: number }>(
      `select count(pg_terminate_backend(pid))::int as n from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and query ilike $1`,
      [like],
    ),
  )
  return rows[0]?.n ?? 0
}

/** Ends the clients of that type, except our own. */
async function killClients(url: string, type: 'normal' | 'pubsub'): Promise<number> {
  return withRedis(url, async (client) => Number(await client.call('CLIENT', 'KILL', 'TYPE', type)))
}
