/** Commands to a server past the store, on one connection for as long as `work` takes. */
import { Redis } from 'ioredis'

export async function withRedis<T>(url: string, work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: null, connectionName: 'faults' })
  // What fails rejects anyway.
  redis.on('error', () => undefined)
  try {
    await redis.connect()
    return await work(redis)
  } finally {
    redis.disconnect()
  }
}

/** One field of INFO; empty where it is not there. */
export async function infoOf(redis: Redis, field: string): Promise<string> {
  return new RegExp(`^${field}:(.*?)\\r?$`, 'm').exec(await redis.info())?.[1] ?? ''
}
