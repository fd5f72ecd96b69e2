/** What the version before wrote is read as if this one had written it. */
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import {
  freshPrefix,
  openRedisStore,
  redisMissing,
  sharedRedis,
} from '../../../test/support/servers/redis.ts'
import { attemptRecord, COMPLETED, Harness, retry, settleRequest } from '../conformance/support.ts'
import { packId } from './ids.ts'

interface Opened {
  readonly harness: Harness
  readonly redis: Redis
  readonly keyOf: (name: string) => string
  readonly close: () => Promise<void>
}

async function open(): Promise<Opened> {
  const prefix = freshPrefix()
  const under = await openRedisStore({ url: sharedRedis(), prefix })
  const redis = new Redis(sharedRedis())
  return {
    harness: new Harness(under),
    redis,
    keyOf: (name) => `${prefix}:{${prefix}}:${name}`,
    close: async () => {
      redis.disconnect()
      await under.close()
    },
  }
}

describe.skipIf(redisMissing() !== '')('data of the version before', () => {
  test('a completed job whose end does not tell by whom was completed by nobody', async () => {
    const { harness, redis, keyOf, close } = await open()
    const { id } = await harness.finished(COMPLETED)
    const [ends, field] = [keyOf('ends'), packId(id)]
    const end = JSON.parse((await redis.hget(ends, field)) ?? '') as unknown[]
    await redis.hset(ends, field, JSON.stringify(end.slice(0, 7)))
    const { worker, result } = await harness.inState(id, 'completed')
    expect([worker, result]).toEqual(['00000000-0000-0000-0000-000000000000', '{"ok":true}'])
    await close()
  })

  test('a job that failed before there were records has those of its later attempts', async () => {
    const { harness, redis, keyOf, close } = await open()
    const held = await harness.running()
    await harness.settled(held, retry(0))
    const past = (await redis.hget(keyOf('past'), packId(held.job.id))) ?? ''
    expect(Object.keys(JSON.parse(past) as object).toSorted()).toEqual(['a', 'e'])
    await harness.passAndPromote(1_000)
    const again = await harness.claimOne(held.worker)
    const record = attemptRecord(again)
    await harness.cycle(held.worker, [{ ...settleRequest(again, retry(0)), record }], null)
    expect((await harness.record(held.job.id)).attempts).toEqual([record])
    await close()
  })
})
