/** A Redis that is out of memory refuses new jobs, and everything else works. */
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { redisMissing } from '../../../test/support/servers/redis.ts'
import { startRedis, type RedisServer } from '../../../test/support/servers/redis-server.ts'
import type { JobId, Token, WorkerId } from '../../job/ids.ts'
import type { Settlement } from '../../job/settlement.ts'
import {
  cancelOne,
  editOne,
  newFlushId,
  newJob,
  newJobs,
  newWorkerId,
  RELEASE,
  retry,
  settleRequest,
  uniqueWhile,
} from '../conformance/support.ts'
import type { Lease, Store } from '../store.ts'
import { redisStore } from './index.ts'

const COMPLETED: Settlement = { type: 'completed', result: '"done"', resultDropped: false }
const JOBS = 500

/** A store with jobs, on a server whose memory limit is now below what it uses. */
async function fullStore(server: RedisServer): Promise<{ store: Store; ids: Set<JobId>; more: Redis }> {
  const store = redisStore({ url: server.url, onNotice: () => undefined })
  await store.open()
  const jobs = newJobs(JOBS)
  await store.enqueue({ id: newFlushId(), jobs })
  const more = new Redis(server.url)
  await more.config('SET', 'maxmemory', '100kb')
  return { store, ids: new Set(jobs.map(({ id }) => id)), more }
}

async function claim(store: Store, worker: WorkerId): Promise<readonly Lease[]> {
  const request = { queue: 'default', limit: 100, suspects: true }
  return (await store.cycle({ worker, settle: [], claim: request })).leases
}

function placesOf(lease: Lease | undefined): { token: Token; position: number }[] {
  if (lease === undefined) throw new Error('nothing was claimed')
  return lease.jobs.map((_, position) => ({ token: lease.token, position }))
}

describe.skipIf(redisMissing() !== '')('a full Redis', () => {
  test('refuses a flush wholly with a clear error, and takes the same flush later', async () => {
    await using server = await startRedis()
    const { store, more } = await fullStore(server)
    for (const unique of [null, uniqueWhile('unfinished')]) {
      await more.config('SET', 'maxmemory', '100kb')
      const flush = { id: newFlushId(), jobs: [...newJobs(2), newJob({ unique })] }
      await expect(store.enqueue(flush)).rejects.toMatchObject({
        code: 'HF_STORE_FULL',
        hint: expect.stringContaining('maxmemory'),
      })
      for (const { id } of flush.jobs) expect(await store.admin.get(id)).toBeNull()
      await more.config('SET', 'maxmemory', '0')
      await expect(store.enqueue(flush)).resolves.toHaveLength(3)
    }
    more.disconnect()
    await store.close()
  })

  test('refuses another payload or rank and leaves the job as it is, but lets it come at once', async () => {
    await using server = await startRedis()
    const { store, more, ids } = await fullStore(server)
    const [id] = ids
    const before = await store.admin.get(id!)
    for (const edit of [{ payload: '"new"' }, { rank: { priority: 9, headStartMs: 1 } }])
      await expect(editOne(store, id!, edit)).rejects.toMatchObject({ code: 'HF_STORE_FULL' })
    expect(await store.admin.get(id!)).toEqual(before)
    expect(await editOne(store, id!, { due: { inMs: 0 } })).toBe('edited')
    more.disconnect()
    await store.close()
  })

  test('lets a worker do all that it does, although much of it takes memory', async () => {
    await using server = await startRedis()
    const { store, more } = await fullStore(server)
    const worker = newWorkerId()
    await store.register(worker, 30_000)
    const [first] = await claim(store, worker)
    const [held, ...others] = placesOf(first)
    const settle = others.map((one, n) => settleRequest(one, n % 2 === 0 ? RELEASE : retry(0)))
    const reports = [{ ...held!, progress: { done: 1, total: 2, note: null }, log: [] }]
    const { settled } = await store.cycle({ worker, settle, claim: null, reports })
    expect(new Set(settled)).toEqual(new Set(['written']))
    expect(await cancelOne(store, first!.jobs[0]!.id, null)).toBe('requested')
    expect(await store.heartbeat({ worker, undelivered: [] })).toMatchObject({
      alive: true,
      cancelled: [held],
    })
    expect(await store.upkeep.lead(worker, 1_000)).toBe(true)
    await store.notes.put('worker', worker, 'here', 1_000)
    await store.heartbeat({ worker, undelivered: [held!.token] })
    expect((await store.upkeep.promote(1_000)).promoted).toBeGreaterThan(10)
    await claim(store, worker)
    await store.retire(worker)
    expect((await store.upkeep.rescue(1_000)).jobs).toHaveLength(100)
    more.disconnect()
    await store.close()
  })

  test('is drained of everything', async () => {
    await using server = await startRedis()
    const { store, ids, more } = await fullStore(server)
    const worker = newWorkerId()
    await store.register(worker, 30_000)
    const done = new Set<JobId>()
    for (let leases = await claim(store, worker); leases.length > 0; leases = await claim(store, worker)) {
      for (const lease of leases) {
        // In two halves, so that a mask is written, too.
        const requests = placesOf(lease).map((one) => settleRequest(one, COMPLETED))
        for (const half of [requests.slice(0, 50), requests.slice(50)]) {
          const { settled } = await store.cycle({ worker, settle: half, claim: null })
          expect(new Set(settled)).toEqual(new Set(['written']))
        }
        for (const { id } of lease.jobs) done.add(id)
      }
    }
    expect(done).toEqual(ids)
    const all = { completedMs: 0, deadMs: 0, cancelledMs: 0, maxCompleted: 0, maxDead: 0, maxCancelled: 0 }
    expect(await store.upkeep.prune(all, 10_000)).toEqual({ pruned: JOBS })
    more.disconnect()
    await store.close()
  })
})
