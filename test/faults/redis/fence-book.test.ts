/** Proves that the judge of the append-only file notices bugs. */
import { describe, expect, test } from 'vitest'
import { newWorkerId, newJobs, newFlushId } from '../../../src/stores/conformance/support.ts'
import { packId } from '../../../src/stores/redis/ids.ts'
import { redisStore } from '../../../src/stores/redis/index.ts'
import { oneShard } from '../../../src/stores/redis/shards.ts'
import { redisMissing } from '../../support/servers/redis.ts'
import { startRedis } from '../../support/servers/redis-server.ts'
import { readAppendOnly } from './support/append-only.ts'
import { withRedis } from './support/commands.ts'
import { judgeFences, type FenceReport } from './support/fence-book.ts'
import { KEPT } from './support/stage.ts'

const BASE = oneShard('holdfast').control.keys[0]
const END = '["c",1,1,1,1,0,null]'

/** Writes that bypass the store while one job is leased, one waits and one is completed. */
const HARMS = [
  { name: 'nothing', write: () => [], found: [] },
  {
    name: 'a completion of a job that another lease holds',
    write: (leased: string) => [['HSET', `${BASE}ends`, leased, END]],
    found: ['finished under the lease of somebody else', 'finished by nobody who held it'],
  },
  {
    name: 'a completion of a job that waits',
    write: (_leased: string, waiting: string) => [['HSET', `${BASE}ends`, waiting, END]],
    found: ['finished by nobody who held it'],
  },
  {
    name: 'a second completion',
    write: (_leased: string, _waiting: string, done: string) => [['HSET', `${BASE}ends`, done, END]],
    found: ['finished by nobody who held it', 'finished twice'],
  },
  {
    name: 'a leased job that is queued again',
    write: (leased: string) => [['ZADD', `${BASE}ready:default`, '1', leased]],
    found: ['queued again under the lease of somebody else'],
  },
  {
    name: 'a job that is forgotten before its end',
    write: (_leased: string, waiting: string) => [['HDEL', `${BASE}jobs`, waiting]],
    found: ['forgotten before its end'],
  },
] as const

describe.skipIf(redisMissing() !== '')('the judge of the append-only file', () => {
  test.for(HARMS)('finds $name', async ({ write, found }) => {
    const { report, granted } = await recordWith(write)
    expect(report.granted).toBe(granted)
    expect(report.broken).toEqual(found.map((text) => expect.stringContaining(text)))
  })
})

async function recordWith(
  write: (leased: string, waiting: string, done: string) => readonly (readonly string[])[],
): Promise<{ report: FenceReport; granted: number }> {
  await using server = await startRedis({ settings: KEPT })
  const store = redisStore({ url: server.url, onNotice: () => undefined })
  await store.open()
  const worker = newWorkerId()
  await store.register(worker, 30_000)
  await store.enqueue({ id: newFlushId(), jobs: newJobs(3) })
  const claim = { queue: 'default', limit: 2, suspects: false }
  const { leases } = await store.cycle({ worker, settle: [], claim })
  const lease = leases[0]!
  const settlement = { type: 'completed', result: null, resultDropped: false } as const
  await store.cycle({
    worker,
    settle: [{ token: lease.token, position: 0, settlement, runMs: 1 }],
    claim: null,
  })
  const { jobs } = await store.admin.list({ states: ['ready'], limit: 1, after: null })
  const ids = [lease.jobs[1]!.id, jobs[0]!.id, lease.jobs[0]!.id].map(packId)
  const [leased = '', waiting = '', done = ''] = ids
  await withRedis(server.url, async (redis) => {
    for (const [command = '', ...args] of write(leased, waiting, done)) await redis.call(command, ...args)
  })
  await store.close()
  return { report: judgeFences(await readAppendOnly(server.url), BASE), granted: lease.jobs.length }
}
