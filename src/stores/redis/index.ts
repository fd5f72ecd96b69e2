/** What `holdfast/redis` exports. */
export { redisStore } from './redis-store.ts'
export type { RedisStoreOptions } from './options.ts'
