/**
 * One PostgreSQL of the newest and one of the oldest supported version for a whole run, and one Redis; a file isolates
 * itself with a database, or a prefix, of its own. Runs in vitest's main process, so what is found here reaches the tests
 * as provided values.
 */
import { readFileSync } from 'node:fs'
import type { TestProject } from 'vitest/node'
import { installPgBouncer, skippedSince } from './pgbouncer-binary.ts'
import { startPostgres } from './postgres-server.ts'
import { installRedis, redisSkippedSince } from './redis-binary.ts'
import { startRedis } from './redis-server.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** URLs; read them by `sharedPostgres` of `database.ts`. */
    postgres18: string
    /** Empty where it cannot be had. */
    postgres13: string
    /** The reason, empty if it is there; read it by `pgBouncerMissing` of `pgbouncer.ts`. */
    pgBouncerMissing: string
    /** The URL, empty where there is none; read it by `sharedRedis` of `redis.ts`. */
    redis: string
    /** The reason, empty if it is there; read it by `redisMissing` of `redis.ts`. */
    redisMissing: string
  }
}

// Nothing here has to survive a crash of the machine. 200: vitest runs many files, each with pools of its own.
const settings = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  max_connections: '200',
  shared_buffers: '64MB',
}

export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  // Every project inherits this file and calls it, the root last; what the root provides is seen by all.
  if (!project.isRootProject()) return undefined
  const { config, state, logger } = project.vitest
  const texts = state.getPaths().map((path) => readFileSync(path, 'utf8'))
  // What runs next is not known while watching.
  const isNeeded = (word: RegExp): boolean => config.watch || texts.some((text) => word.test(text))

  const missing = isNeeded(/pgbouncer/i) ? await installPgBouncer() : ''
  // The default reporter is silent on why a test was skipped.
  if (missing !== '') logger.warn(skippedSince(missing))
  project.provide('pgBouncerMissing', missing)

  const redis = isNeeded(/redis/i) ? await sharedRedis(project) : []
  const postgres = isNeeded(/postgres/i) ? await sharedPostgres(project) : []
  return async () => {
    await Promise.all([...redis, ...postgres].map((server) => server.dispose()))
  }
}

interface Disposable {
  dispose(): Promise<void>
}

async function sharedRedis(project: TestProject): Promise<Disposable[]> {
  const missing = await installRedis()
  if (missing !== '') project.vitest.logger.warn(redisSkippedSince(missing))
  const server = missing === '' ? await startRedis() : null
  project.provide('redisMissing', missing)
  project.provide('redis', server?.url ?? '')
  return server === null ? [] : [server]
}

async function sharedPostgres(project: TestProject): Promise<Disposable[]> {
  const { logger } = project.vitest
  const [newest, oldest] = await Promise.all([
    startPostgres({ version: 18, settings }),
    startPostgres({ version: 13, settings }).catch((error: unknown) => {
      logger.warn(`Skipped: all that runs on PostgreSQL 13, which could not be had here (${String(error)}).`)
      return null
    }),
  ])
  project.provide('postgres18', newest.url())
  project.provide('postgres13', oldest?.url() ?? '')
  return oldest === null ? [newest] : [newest, oldest]
}
