/** Sends commands that bypass the store, on one connection for as long as `work` takes. */
import { Redis } from 'ioredis'

export async function withRedis<T>(url: string, work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: null, connectionName: 'faults' })
  // A failed command rejects anyway.
  redis.on('error', () => undefined)
  try {
    await redis.connect()
    return await work(redis)
  } finally {
    redis.disconnect()
  }
}

/** One field of INFO, empty if it is missing. */
export async function infoOf(redis: Redis, field: string): Promise<string> {
  return new RegExp(`^${field}:(.*?)\\r?$`, 'm').exec(await redis.info())?.[1] ?? ''
}
