/** The Redis that all test files of a run share, see `global-setup.ts`. Files are isolated by prefix. */
import { inject } from 'vitest'
import { redisSkippedSince } from './redis-binary.ts'

export { freshPrefix, openAuditedStore, openRedisStore } from './redis-store.ts'

/** Why suites are skipped, in one line, or empty. */
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
