import { existsSync } from 'node:fs'
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { redisMissing } from './redis.ts'
import { startRedis } from './redis-server.ts'

describe.skipIf(redisMissing() !== '')('a Redis of one’s own', () => {
  test('takes settings, keeps its data over a kill, and leaves nothing behind', async () => {
    const server = await startRedis({ settings: { appendonly: 'yes', appendfsync: 'always' } })
    const redis = new Redis(server.url)
    await redis.set('a', 'b')
    const [, folder = ''] = await redis.config('GET', 'dir')
    redis.disconnect()
    await server.kill()
    await server.start()
    const again = new Redis(server.url)
    expect(await again.get('a')).toBe('b')
    again.disconnect()
    await server.dispose()
    expect(folder).toMatch(/holdfast-redis-/)
    expect(existsSync(folder)).toBe(false)
    await server.dispose()
  })
})
