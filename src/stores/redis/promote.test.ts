/** Promotion after an outage: many queues, each with many jobs that are due. */
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import {
  freshPrefix,
  openAuditedStore,
  redisMissing,
  sharedRedis,
} from '../../../test/support/servers/redis.ts'
import { seededRandom } from '../../std/random.ts'
import { Harness, MINUTE_MS, newJob } from '../conformance/support.ts'

const QUEUES = 40
const EACH = 25
const LIMIT = 60

/** The script also counts how many scheduled jobs it reads. */
function counting(file: string, text: string): string {
  if (file !== 'promote') return text
  const place = '  front.at = 1\n'
  expect(text.split(place)).toHaveLength(2)
  return text.replace(place, `${place}  redis.call('INCRBY', B .. 'reads', #front.jobs / 2)\n`)
}

describe.skipIf(redisMissing() !== '')('promotion', () => {
  test('takes the earliest of all queues first, and reads about as many as it moves', async () => {
    const prefix = freshPrefix()
    const under = await openAuditedStore({ url: sharedRedis(), prefix, edit: counting })
    const harness = new Harness(under)
    const random = seededRandom(7)
    const jobs = Array.from({ length: QUEUES * EACH }, (_, n) =>
      newJob({
        queue: `queue-${n % QUEUES}`,
        priority: n % 3,
        // Some have the same due time: they are ordered by id.
        due: { inMs: MINUTE_MS + Math.floor(random.float() * 500) },
      }),
    )
    await harness.enqueue(jobs)
    const later = newJob({ queue: 'later', due: { inMs: 60 * MINUTE_MS } })
    await harness.enqueue([later])
    await harness.advance(2 * MINUTE_MS)
    const dueAt = new Map<string, number>()
    for (const { id } of jobs) dueAt.set(id, (await harness.record(id)).dueAt)
    const inOrder = [...dueAt]
      .sort(([a, dueA], [b, dueB]) => dueA - dueB || (a < b ? -1 : 1))
      .map(([id]) => id)
    const promote = (): ReturnType<typeof harness.store.upkeep.promote> => harness.store.upkeep.promote(LIMIT)
    const ready = async (): Promise<string[]> => {
      const { jobs: found } = await harness.store.admin.list({ limit: 1_000, after: null, states: ['ready'] })
      return found.map(({ id }) => id as string).sort()
    }

    expect(await promote()).toEqual({ promoted: LIMIT, nextInMs: 0 })
    const redis = new Redis(sharedRedis())
    const reads = Number(await redis.get(`${prefix}:{${prefix}}:reads`))
    redis.disconnect()
    expect(reads).toBeGreaterThanOrEqual(LIMIT)
    expect(reads).toBeLessThanOrEqual(4 * LIMIT + QUEUES + 1)
    expect(await ready()).toEqual(inOrder.slice(0, LIMIT).sort())

    for (let moved = 2 * LIMIT; moved < inOrder.length + LIMIT; moved += LIMIT) {
      await promote()
      expect(await ready()).toEqual(inOrder.slice(0, moved).sort())
    }
    const { promoted, nextInMs } = await promote()
    expect(promoted).toBe(0)
    expect(nextInMs).toBeGreaterThan(50 * MINUTE_MS)
    await under.close()
  })
})
