/** Every kind of store, on a real server or file, for tests that all of them have to pass. */
import { DatabaseSync } from '@photostructure/sqlite'
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

/** A store that several processes share. */
export interface Fleet {
  connect(): Store
  close(): Promise<void>
}

interface StoreKind {
  readonly name: string
  readonly missing?: () => string
  readonly transactions: boolean
  /** Each process connects on its own. The processes of the in-memory store share one instance. */
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
    name: "a database of the caller's",
    transactions: true,
    start() {
      const folder = mkdtempSync(join(tmpdir(), 'holdfast-fleet-'))
      const connect = (): Store => storeWithHandle(join(folder, 'app.db'))
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

/** Silent, because test servers run without an append-only file, which emits a notice. */
const onNotice = (): void => undefined

/** Each process has a handle of its own. */
function storeWithHandle(path: string): Store {
  const database = new DatabaseSync(path)
  database.exec('pragma journal_mode = wal')
  const store = sqliteStore({ database })
  return {
    ...store,
    async close() {
      await store.close()
      database.close()
    },
  }
}

function shared(store: Store): Fleet {
  return { connect: () => ({ ...store, close: () => Promise.resolve() }), close: () => store.close() }
}

/** Opens the store once in advance, because creating its tables may take longer than the deadline of a call. */
export async function startFleet(start: StoreKind['start']): Promise<Fleet> {
  const fleet = await start()
  const store = fleet.connect()
  await store.open()
  await store.close()
  return fleet
}

export const START_MS = 120_000
