/** Wrong clocks, in real time on every store (memory, embedded, postgres, redis, a cluster): schedules follow the store's clock. */
import { holdfast, type RunningWorker } from 'holdfast'
import { memoryStore } from 'holdfast/memory'
import type { Store } from 'holdfast/store'
import { afterAll, beforeAll, describe, expect, test, type TestContext } from 'vitest'
import { Hub } from '../src/hub.ts'
import { systemClock } from '../src/std/clock.ts'
import { systemRandom } from '../src/std/random.ts'
import type { StoreUnderTest } from '../src/stores/conformance/index.ts'
import { pgExecutor } from '../src/stores/postgres/pg/pg-executor.ts'
import { EVERY_STORE, START_MS, startFleet } from './support/every-store.ts'
import { freshDatabase, sharedPostgres, type Database } from './support/servers/database.ts'
import { openRedisStore, redisMissing, sharedRedis } from './support/servers/redis.ts'
import { startRedisCluster, type RedisCluster } from './support/servers/redis-cluster.ts'
import { Signal } from './support/signal.ts'
import { openSqlStore } from './support/sql-stores.ts'
import { SqliteBench } from './support/sqlite.ts'

const SECOND_MS = 1_000
const HOUR_MS = 3_600_000

/** A process whose clock is ahead by `offMs`, and the ticks that it fires. */
function join({ onTestFinished }: TestContext, store: Store, offMs = 0) {
  const hf = holdfast({ store, logger: false, timeout: '30s' })
  Hub.of(hf).moveTo({
    store,
    clock: { ...systemClock, now: () => systemClock.now() + offMs },
    random: systemRandom,
  })
  onTestFinished(() => hf.close())
  const news = new Signal()
  const ticks: number[] = []
  hf.on('schedule.fired', ({ tick }) => {
    ticks.push(tick.getTime())
    news.notify()
  })
  const ran = new Set<string>()
  const run = ({ job: { id } }: { job: { id: string } }): void => {
    ran.add(id)
    news.notify()
  }
  const job = hf.job({ name: 'tick', run })
  const schedule = () => job.schedule('tick', { every: '1s', catchUp: 'all' })
  return { hf, job, news, ticks, ran, schedule }
}

/** Every second from the first to the last has exactly one tick. */
function expectEverySecond(ticks: readonly number[]): void {
  const first = Math.min(...ticks)
  expect(ticks.toSorted((a, b) => a - b)).toEqual(ticks.map((_, index) => first + index * SECOND_MS))
}

const bench = new SqliteBench()
let database: Database
let cluster: RedisCluster | undefined
beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
  if (redisMissing() === '') cluster = await startRedisCluster()
}, START_MS)
afterAll(async () => {
  await cluster?.dispose()
  await bench.close()
  await database.drop()
})

/** Stores whose clock can be set back. */
const MOVABLE: readonly { name: string; needsRedis?: boolean; openStore: () => Promise<StoreUnderTest> }[] = [
  {
    name: 'memory',
    openStore: async () => {
      let offMs = 0
      const store = memoryStore({ clock: { now: () => systemClock.now() + offMs } })
      return { store, advance: async (ms) => void (offMs += ms), close: () => store.close() }
    },
  },
  { name: 'embedded', openStore: () => bench.open() },
  {
    name: 'PostgreSQL',
    openStore: () => openSqlStore({ executor: pgExecutor({ connectionString: database.url }) }),
  },
  { name: 'Redis', needsRedis: true, openStore: () => openRedisStore({ url: sharedRedis() }) },
  { name: 'Redis Cluster', needsRedis: true, openStore: () => openRedisStore({ url: cluster!.url }) },
]

// Concurrent, because they spend their time waiting for ticks.
describe('schedules', () => {
  test.concurrent.for(EVERY_STORE)(
    'processes whose clocks are an hour ahead and behind fire every tick on $name',
    { timeout: START_MS },
    async ({ missing, start }, context) => {
      const why = missing?.() ?? ''
      if (why !== '') return context.skip(why)
      const fleet = await startFleet(start)
      context.onTestFinished(() => fleet.close())
      const startedAt = systemClock.now()
      const all: ReturnType<typeof join>[] = []
      let before: RunningWorker | undefined
      for (const offMs of [HOUR_MS, -HOUR_MS, 0]) {
        const process = join(context, fleet.connect(), offMs)
        all.push(process)
        await process.schedule()
        const worker = await process.hf.work()
        await before?.stop()
        before = worker
        await process.news.until(() => expect(process.ticks.length).toBeGreaterThanOrEqual(3))
      }
      await before?.stop()
      const ticks = all.flatMap((process) => process.ticks)
      expectEverySecond(ticks)
      expect(ticks[0]).toBeGreaterThanOrEqual(startedAt - SECOND_MS)
      expect(ticks.at(-1)).toBeLessThanOrEqual(systemClock.now())
    },
  )

  test.concurrent.for(MOVABLE)(
    'a store clock that is put back emits store.clock, and schedules go on, on $name',
    { timeout: START_MS },
    async ({ needsRedis, openStore }, context) => {
      if (needsRedis === true && redisMissing() !== '') return context.skip(redisMissing())
      const under = await openStore()
      const { hf, job, news, ticks, ran, schedule } = join(context, under.store)
      await schedule()
      await job.enqueueMany([undefined, undefined], { in: '2h' })
      const told: { backMs: number }[] = []
      const failed: unknown[] = []
      hf.on('store.clock', (event) => {
        told.push(event)
        news.notify()
      })
      hf.on('duty.failed', (event) => void failed.push(event))
      await hf.work()
      await news.until(() => expect(ticks.length).toBeGreaterThanOrEqual(3))
      await under.advance(-HOUR_MS)
      await news.until(() =>
        expect(told).toEqual([{ backMs: expect.any(Number), scheduled: 2, schedules: 1 }]),
      )
      expect(told[0]!.backMs).toBeGreaterThan(HOUR_MS - 10 * SECOND_MS)
      const isBack = (tick: number): boolean => tick < ticks[0]!
      await news.until(() => expect(ticks.filter(isBack).length).toBeGreaterThanOrEqual(3))
      // Ticks that fired before fire again, each with a new job.
      await job.schedule('tick', { every: '1s', catchUp: 'latest' })
      await under.advance(HOUR_MS - 10 * SECOND_MS)
      const again = (): number[] => ticks.slice(ticks.findIndex(isBack)).filter((tick) => !isBack(tick))
      await news.until(() => expect(again().length).toBeGreaterThanOrEqual(3))
      await news.until(() => expect(ran.size).toBe(ticks.length))
      expect(failed).toEqual([])
    },
  )
})
