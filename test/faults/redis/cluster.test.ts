/** Faults that only a cluster has: moving hash slots, nodes that fail, steps between two shards. */
import { Cluster } from 'ioredis'
import * as z from 'zod'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { pause, until } from '../../support/until.ts'
import { freshPrefix, redisMissing, sharedRedis } from '../../support/servers/redis.ts'
import { startRedisCluster, type RedisCluster } from '../../support/servers/redis-cluster.ts'
import { holdfast } from '../../../src/index.ts'
import { systemClock } from '../../../src/std/clock.ts'
import { newFlushId, newJob } from '../../../src/stores/conformance/support.ts'
import type { Store } from '../../../src/stores/store.ts'
import { redisStore, type RedisStoreOptions } from '../../../src/stores/redis/index.ts'
import { readScripts } from '../../../src/stores/redis/scripts.ts'
import { hashSlotOf } from '../../../src/stores/redis/cluster/hash-slots.ts'
import { keyedJob } from '../../../src/stores/redis/enqueue.ts'

describe.skipIf(redisMissing() !== '')('a Redis Cluster', () => {
  let cluster: RedisCluster
  beforeAll(async () => {
    cluster = await startRedisCluster({ settings: { appendonly: 'yes', appendfsync: 'always' } })
  }, 60_000)
  afterAll(() => cluster.dispose())

  function open(options: RedisStoreOptions = {}): { store: Store; prefix: string } {
    const prefix = freshPrefix()
    const store = redisStore({ url: cluster.url, prefix, onNotice: () => undefined, ...options })
    onTestFinished(() => store.close())
    return { store, prefix }
  }

  async function refusalOf(options: RedisStoreOptions): Promise<unknown> {
    return open(options)
      .store.open()
      .catch((error: unknown) => error)
  }

  test('is not taken for a single server, nor the other way round', async () => {
    const [node] = cluster.nodes
    expect(await refusalOf({ url: node?.url ?? '' })).toMatchObject({
      code: 'HF_BAD_STORE',
      hint: expect.stringContaining('redis-cluster://'),
    })
    const alone = sharedRedis().replace('redis://', 'redis-cluster://')
    expect(await refusalOf({ url: alone })).toMatchObject({
      code: 'HF_BAD_STORE',
      hint: expect.stringContaining('redis://'),
    })
  })

  test('is found by any of the nodes that are named', async () => {
    const { port } = cluster.nodes[1] ?? { port: 0 }
    const { store } = open({ url: `redis-cluster://127.0.0.1:1?node=127.0.0.1:${port}` })
    await store.open()
    expect(await store.admin.queues()).toEqual([])
  })

  test('a worker claims from queues on all nodes, and is woken at once', async () => {
    const { store } = open()
    const names = ['a', 'b', 'c', 'd', 'e', 'f']
    const hf = holdfast({ store, logger: false, queues: declared(names) })
    onTestFinished(() => hf.close())
    const done: string[] = []
    const jobs = names.map((queue) =>
      hf.job({
        name: `on-${queue}`,
        queue,
        input: z.number(),
        run: ({ input }) => void done.push(`${queue}${input}`),
      }),
    )
    const worker = await hf.work({ poll: '30s' })
    for (let round = 0; round < 3; round++) for (const job of jobs) await job.enqueue(round)
    await until('all jobs to be done', () => done.length === 3 * names.length, { deadlineMs: 10_000 })
    await worker.stop()
    const counts = (await store.admin.queues()).map(({ queue, counts: { completed } }) => [queue, completed])
    expect(counts).toEqual(names.map((name) => [name, 3]))
  })

  test('while slots move about, every job is run once', { timeout: 120_000 }, async () => {
    const { store, prefix } = open()
    const hf = holdfast({ store, logger: false, queues: declared(['moving']) })
    onTestFinished(() => hf.close())
    const runs = new Map<number, number>()
    const job = hf.job({
      name: 'count',
      queue: 'moving',
      input: z.number(),
      run: ({ input }) => void runs.set(input, (runs.get(input) ?? 0) + 1),
    })
    const worker = await hf.work({ concurrency: 20, poll: 200 })
    let enqueued = 0
    let isOver = false
    const load = (async () => {
      while (!isOver) {
        await Promise.all(Array.from({ length: 10 }, () => job.enqueue(enqueued++)))
        await pause(5)
      }
    })()
    for (let move = 0; move < 6; move++) {
      await cluster.moveSlot(hashSlotOf(`{${prefix}/moving}`), 20)
      await cluster.moveSlot(hashSlotOf(`{${prefix}}`), 20)
    }
    isOver = true
    await load
    await until('all jobs to be done', () => runs.size === enqueued)
    await worker.stop()
    expect([...runs.values()].filter((times) => times !== 1)).toEqual([])
    const [status] = await store.admin.queues()
    expect(status?.counts).toMatchObject({ ready: 0, running: 0, completed: enqueued })
    expect(enqueued).toBeGreaterThan(500)
  })

  test('a script does not run while its slot is on its way', async () => {
    const { store, prefix } = open()
    await store.enqueue({ id: newFlushId(), jobs: [newJob({ queue: 'half' })] })
    let isMoving = true
    const moving = cluster.moveSlot(hashSlotOf(`{${prefix}/half}`), 100).finally(() => (isMoving = false))
    let looks = 0
    let slowestMs = 0
    while (isMoving) {
      const begun = systemClock.monotonicMs()
      // A script sees all keys or none, never a part of them.
      expect(await store.admin.queues()).toMatchObject([{ queue: 'half', counts: { ready: 1 } }])
      slowestMs = Math.max(slowestMs, systemClock.monotonicMs() - begun)
      looks++
    }
    await moving
    expect(looks).toBeGreaterThan(0)
    expect(slowestMs).toBeGreaterThan(100)
  })

  test(
    'a node that is killed and comes back loses nothing that was acked',
    { timeout: 120_000 },
    async () => {
      const { store } = open({ commandTimeoutMs: 2_000 })
      const names = ['k0', 'k1', 'k2', 'k3', 'k4', 'k5']
      const hf = holdfast({ store, logger: false, timeout: 2_000, queues: declared(names) })
      onTestFinished(() => hf.close())
      const acked = new Set<string>()
      const done = new Set<string>()
      const jobs = names.map((queue) =>
        hf.job({
          name: `kill-${queue}`,
          queue,
          input: z.string(),
          run: ({ input }) => void done.add(input),
        }),
      )
      const worker = await hf.work({ poll: 200, lease: 3_000 })
      let isOver = false
      let failures = 0
      const load = Promise.all(
        jobs.map(async (job, queue) => {
          for (let number = 0; !isOver; number++) {
            const input = `${queue}-${number}`
            await job.enqueue(input).then(
              () => acked.add(input),
              () => failures++,
            )
            await pause(10)
          }
        }),
      )
      for (const node of cluster.nodes) {
        await pause(500)
        await node.kill()
        await pause(500)
        await node.start()
        await until('the cluster to be whole', () => cluster.isWhole())
      }
      await pause(500)
      isOver = true
      await load
      expect(failures).toBeGreaterThan(0)
      await until('all acked jobs to be done', () => [...acked].every((input) => done.has(input)))
      await worker.stop()
    },
  )

  test('a tick that was interrupted halfway is delivered once, by the next upkeep', async () => {
    const { store, prefix } = open()
    await store.schedules.put('nightly', { spec: '{}', nextTick: 1 })
    const job = newJob({ queue: 'reports' })
    // First as a process that dies after the first of the two steps, then as one that dies before the cleanup.
    const control = `${prefix}:{${prefix}}:`
    const { text } = readScripts().get('fire_later')
    await using redis = connect(cluster)
    const fire = (tick: number): Promise<unknown> =>
      redis.client.eval(text, 1, control, 'nightly', tick, tick + 1, ...keyedJob(job))
    expect(await fire(1)).toBe('fired')
    expect(await store.admin.queues()).toEqual([])
    await store.upkeep.promote(10)
    expect(await fire(2)).toBe('fired')
    await store.upkeep.promote(10)
    expect(await redis.client.hlen(`${control}outbox`)).toBe(0)
    expect(await store.admin.queues()).toMatchObject([{ queue: 'reports', counts: { ready: 1 } }])
    expect(await store.schedules.fire('nightly', 2, 3, newJob({ queue: 'reports' }))).toBe('already')
    expect(await store.schedules.fire('nightly', 3, 4, newJob({ queue: 'reports' }))).toBe('fired')
    expect(await store.admin.queues()).toMatchObject([{ queue: 'reports', counts: { ready: 2 } }])
  })
})

function declared(names: readonly string[]): Record<string, object> {
  return Object.fromEntries(names.map((name) => [name, {}]))
}

function connect({ nodes }: RedisCluster): { client: Cluster } & AsyncDisposable {
  const client = new Cluster(nodes.map(({ port }) => ({ host: '127.0.0.1', port })))
  return { client, [Symbol.asyncDispose]: async () => client.disconnect() }
}
