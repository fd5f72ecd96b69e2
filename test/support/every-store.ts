/** Every kind of store, opened for real, for tests that say the same of all of them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryStore } from 'holdfast/memory'
import { postgresStore } from 'holdfast/postgres'
import { redisStore } from 'holdfast/redis'
import { sqliteStore } from 'holdfast/sqlite'
import type { Store } from 'holdfast/store'
import { freshDatabase, sharedPostgres, type Database } from './servers/database.ts'
import { freshPrefix, redisMissing, sharedRedis } from './servers/redis.ts'
import { startRedisCluster } from './servers/redis-cluster.ts'

/** A store as several processes share it. */
export interface Fleet {
  connect(): Store
  close(): Promise<void>
}

interface StoreKind {
  readonly name: string
  readonly missing?: () => string
  readonly transactions: boolean
  /** What each process of a fleet opens; where one process has the store alone, they share it. */
  readonly start: () => Promise<Fleet>
}

export const EVERY_STORE: readonly StoreKind[] = [
  { name: 'memory', transactions: false, start: () => Promise.resolve(shared(memoryStore())) },
  {
    name: 'embedded',
    transactions: false,
    start() {
      const folder = mkdtempSync(join(tmpdir(), 'holdfast-fleet-'))
      const connect = (): Store => sqliteStore({ directory: join(folder, 'store'), onNotice })
      return Promise.resolve({ connect, close: async () => rmSync(folder, { recursive: true, force: true }) })
    },
  },
  {
    name: 'PostgreSQL',
    transactions: true,
    async start() {
      const database: Database = await freshDatabase(sharedPostgres(18))
      return { connect: () => postgresStore({ url: database.url }), close: () => database.drop() }
    },
  },
  {
    name: 'Redis',
    missing: redisMissing,
    transactions: false,
    start() {
      const prefix = freshPrefix()
      const connect = (): Store => redisStore({ url: sharedRedis(), prefix, onNotice })
      return Promise.resolve({ connect, close: () => Promise.resolve() })
    },
  },
  {
    name: 'Redis Cluster',
    missing: redisMissing,
    transactions: false,
    async start() {
      const cluster = await startRedisCluster()
      const connect = (): Store => redisStore({ url: cluster.url, onNotice })
      return { connect, close: () => cluster.dispose() }
    },
  },
]

/** Test servers run without an append-only file, which is worth a notice everywhere else. */
const onNotice = (): void => undefined

function shared(store: Store): Fleet {
  return { connect: () => ({ ...store, close: () => Promise.resolve() }), close: () => store.close() }
}

/** Opens it beyond the deadline of any call: tables are made, and a busy machine takes its time. */
export async function startFleet(start: StoreKind['start']): Promise<Fleet> {
  const fleet = await start()
  const store = fleet.connect()
  await store.open()
  await store.close()
  return fleet
}

export const START_MS = 120_000
