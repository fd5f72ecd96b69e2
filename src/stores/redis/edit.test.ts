/** An edit replaces the priority inside an encoded record. Everything around it stays. */
import { describe, expect, test } from 'vitest'
import { openRedisStore, redisMissing, sharedRedis } from '../../../test/support/servers/redis.ts'
import { editOne, Harness, MINUTE_MS, uniqueWhile, type JobParts } from '../conformance/support.ts'

const RECORDS: Readonly<Record<string, JobParts>> = {
  'quotes and backslashes in queue and name': { queue: 'a"b,5]', name: '\\"c\\\\","d\\' },
  'a unique key that looks like a head': { unique: uniqueWhile('unfinished', '[1,2,"q","n",5]\n') },
  'options with empty lists': { group: 'g', limits: [] },
  'a payload of many lines': { payload: '{\n"priority":\n5}\n' },
  'a negative head start': { priority: 1, agingMs: -MINUTE_MS },
}

describe.skipIf(redisMissing() !== '')('an edit of the rank', () => {
  test.each(Object.entries(RECORDS))('leaves %s as they are', async (_, parts) => {
    const under = await openRedisStore({ url: sharedRedis() })
    const harness = new Harness(under)
    const { id } = await harness.put(parts)
    const before = await harness.record(id)
    for (const rank of [
      { priority: 9, headStartMs: 9 * MINUTE_MS },
      { priority: 0, headStartMs: 0 },
    ]) {
      expect(await editOne(harness.store, id, { rank })).toBe('edited')
      expect(await harness.record(id)).toEqual({ ...before, ...rank })
    }
    await under.close()
  })

  test('to less than any job of the queue had keeps its oldest ready job exact', async () => {
    const under = await openRedisStore({ url: sharedRedis() })
    const harness = new Harness(under)
    const oldest = await harness.put({ priority: 5 })
    await harness.advance(MINUTE_MS)
    await harness.put({ priority: 5 })
    await editOne(harness.store, oldest.id, { rank: { priority: 0, headStartMs: 0 } })
    const { dueAt } = await harness.record(oldest.id)
    expect((await harness.store.admin.queues())[0]?.oldestReadyAt).toBe(dueAt)
    await under.close()
  })
})
