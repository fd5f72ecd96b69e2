/** The Redis that all test files of a run share, see `global-setup.ts`; a file isolates itself by prefixes of its own. */
import { randomBytes } from 'node:crypto'
import { inject } from 'vitest'
import { redisStoreWith } from '../../../src/stores/redis/redis-store.ts'
import { readScripts, type Scripts } from '../../../src/stores/redis/scripts.ts'
import type { RedisStoreOptions } from '../../../src/stores/redis/index.ts'
import type { StoreUnderTest } from '../../../src/stores/conformance/index.ts'
import { redisSkippedSince } from './redis-binary.ts'

/** Why suites are skipped, in one line; empty where they are not. */
export function redisMissing(): string {
  const missing = inject('redisMissing') as string | undefined
  return missing === '' ? '' : redisSkippedSince(missing ?? 'it was not looked for')
}

/** The URL of the shared server. */
export function sharedRedis(): string {
  const url = inject('redis') as string | undefined
  if (url) return url
  throw new Error('No Redis was started: it is for runs with a test file that has "redis" in its text.')
}

/** By a name that nobody else has. */
export function freshPrefix(): string {
  return `test-${randomBytes(8).toString('hex')}`
}

export interface RedisStoreSetup extends RedisStoreOptions {
  /** Whether the store's clock stands still but for `advance`. */
  readonly frozen?: boolean
}

const FROZEN_MS = Date.UTC(2030, 0, 1)

/** A store on a prefix of its own, with a clock that can be moved on: the scripts are rendered for another time. */
export async function openRedisStore({
  frozen = false,
  ...options
}: RedisStoreSetup): Promise<StoreUnderTest> {
  let offsetMs = 0
  const render = (): Scripts =>
    readScripts(`${frozen ? `${FROZEN_MS * 1000}` : 'time[1] * 1e6 + time[2]'} + ${offsetMs * 1000}`)
  let scripts = render()
  const store = redisStoreWith(
    { prefix: freshPrefix(), onNotice: () => undefined, ...options },
    { get: (name) => scripts.get(name) },
  )
  await store.open()
  return {
    store,
    advance: async (ms) => {
      offsetMs += Math.round(ms)
      scripts = render()
    },
    close: () => store.close(),
  }
}
