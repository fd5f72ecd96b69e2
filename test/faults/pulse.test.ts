/** The thread that renews leases, on a real server of each kind of store that has one. */
import { Worker as Thread } from 'node:worker_threads'
import { Redis } from 'ioredis'
import { Pool } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { freshDatabase, portOf, sharedPostgres } from '../support/servers/database.ts'
import { redisMissing } from '../support/servers/redis.ts'
import { startRedis } from '../support/servers/redis-server.ts'
import { startProxy } from '../support/servers/tcp-proxy.ts'
import { eventually } from '../support/until.ts'
import { makeIds, type WorkerId } from '../../src/job/ids.ts'
import { systemClock } from '../../src/std/clock.ts'
import { systemRandom } from '../../src/std/random.ts'
import { pgExecutor } from '../../src/stores/postgres/pg/pg-executor.ts'
import { postgresStore } from '../../src/stores/postgres/postgres-store.ts'
import { postgresThread } from '../../src/stores/postgres/start-pulse.ts'
import { redisThread } from '../../src/stores/redis/start-pulse.ts'
import { redisStore } from '../../src/stores/redis/redis-store.ts'
import { readScripts } from '../../src/stores/redis/scripts.ts'
import { oneShard } from '../../src/stores/redis/shards.ts'
import type { Pulse, Store } from '../../src/stores/store.ts'
import { Pulses, type PulseParts } from '../../src/stores/pulse/pulse.ts'

const ids = makeIds(systemClock, systemRandom)
const LEASE_MS = 600
/** Pulses that are told, while a test waits, that the event loop turns. */
const turning = new Set<Pulse>()

/** Polls, because a thread cannot notify this one, and lets the pulses know that the loop turns. */
const until = (fact: () => unknown): Promise<void> =>
  eventually(() => {
    for (const pulse of turning) pulse.turned()
    return fact()
  })

/** A server, and queries that bypass the store. */
interface Site {
  readonly url: string
  readonly wrongUrl: string
  readonly open: () => Store
  readonly thread: (url: string) => PulseParts['thread']
  /** Time left of its lease, negative if it has expired. */
  readonly leftMs: (worker: WorkerId) => Promise<number>
  /** Number of connections of heartbeat threads. */
  readonly connections: () => Promise<number>
  readonly endConnections: () => Promise<unknown>
  readonly dispose: () => Promise<void>
}

const THREADS = `from pg_stat_activity where datname = current_database() and application_name = 'holdfast pulse'`

async function onPostgres(): Promise<Site> {
  const database = await freshDatabase(sharedPostgres(18))
  const admin = pgExecutor({ connectionString: database.url, applicationName: 'admin' })
  const ask = async <T>(text: string, ...values: string[]): Promise<T> => {
    const [row] = await admin.query<{ answer: T }>({ name: '', text }, values)
    return row!.answer
  }
  const wrong = new URL(database.url)
  wrong.password = 'wrong'
  wrong.pathname = '/nowhere'
  return {
    url: database.url,
    wrongUrl: wrong.href,
    open: () => postgresStore({ url: database.url }),
    thread: (url) => postgresThread(url, { schema: 'holdfast', prefix: '' }),
    leftMs: (worker) =>
      ask('select expires_at - holdfast.now_ms() as answer from holdfast.worker where id = $1::uuid', worker),
    connections: () => ask(`select count(*) as answer ${THREADS}`),
    endConnections: () => ask(`select count(pg_terminate_backend(pid)) as answer ${THREADS}`),
    dispose: async () => {
      await admin.close()
      await database.drop()
    },
  }
}

/** On its own server, which has no other threads. */
async function onRedis(): Promise<Site> {
  const server = await startRedis()
  const admin = new Redis(server.url)
  const { control } = oneShard('holdfast')
  const threads = async (): Promise<string[]> => {
    const lines = String(await admin.client('LIST')).split('\n')
    return lines.filter((line) => line.includes('name=holdfast-pulse'))
  }
  return {
    url: server.url,
    wrongUrl: 'redis://user:wrong@127.0.0.1:1',
    open: () => redisStore({ url: server.url, onNotice: () => undefined }),
    thread: (url) => redisThread({ url, connection: {}, db: 0, renew: readScripts().get('renew'), control }),
    leftMs: async (worker) => {
      const expiry = await admin.zscore(`${control.keys[0]}expiry`, worker)
      const [seconds, micros] = await admin.time()
      return Number(expiry) - (Number(seconds) * 1_000 + Number(micros) / 1_000)
    },
    connections: async () => (await threads()).length,
    endConnections: async () => {
      for (const line of await threads()) await admin.client('KILL', 'ID', /\bid=(\d+)/.exec(line)![1]!)
    },
    dispose: async () => {
      admin.disconnect()
      await server.dispose()
    },
  }
}

const SITES = [
  { kind: 'PostgreSQL', start: onPostgres, isMissing: false },
  { kind: 'Redis', start: onRedis, isMissing: redisMissing() !== '' },
]

let site: Site
let store: Store
const opened: { close(): Promise<void> }[] = []

function openPulses(parts: Partial<PulseParts> = {}): { pulses: Pulses; notices: string[] } {
  const notices: string[] = []
  const onNotice = (line: string): void => void notices.push(line)
  const pulses = new Pulses({ thread: site.thread(site.url), clock: systemClock, onNotice, ...parts })
  opened.push(pulses)
  return { pulses, notices }
}

interface Kept {
  readonly worker: WorkerId
  readonly pulse: Pulse
}

async function keep(pulses: Pulses, leaseMs = LEASE_MS): Promise<Kept> {
  const worker = ids.worker()
  await store.register(worker, leaseMs)
  const pulse = pulses.keepAlive(worker, leaseMs)!
  pulse.setPatience(60_000)
  turning.add(pulse)
  return { worker, pulse }
}

/** Resolves once the thread renews the lease. */
async function kept(pulses: Pulses): Promise<Kept> {
  const one = await keep(pulses)
  await until(() => expect(one.pulse.sentMs).toBeGreaterThan(0))
  return one
}

/** Blocks this thread: no timer fires, no answer is read, no promise settles. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

describe.each(SITES.filter(({ isMissing }) => !isMissing))('on $kind', ({ start }) => {
  beforeAll(async () => {
    site = await start()
    store = site.open()
    await store.open()
  }, 60_000)

  afterEach(async () => {
    turning.clear()
    await Promise.all(opened.splice(0).map((one) => one.close()))
    await until(async () => expect(await site.connections()).toBe(0))
  })

  afterAll(async () => {
    await store.close()
    await site.dispose()
  })

  describe('a lease with a pulse', () => {
    test('outlasts a loop that is blocked for several leases', async () => {
      const { worker } = await kept(openPulses().pulses)
      block(4 * LEASE_MS)
      expect(await site.leftMs(worker)).toBeGreaterThan(0)
    })

    test('is renewed by a thread that had not even started when the loop was blocked', async () => {
      const { pulse } = await keep(openPulses().pulses)
      for (let ms = 0; ms < 20_000 && pulse.sentMs === -Infinity; ms += 50) block(50)
      expect(pulse.sentMs).toBeGreaterThan(0)
    })

    test('counts from when the renewal was sent, by the clock of this thread', async () => {
      const { worker, pulse } = await kept(openPulses().pulses)
      const blockedMs = systemClock.monotonicMs()
      block(3 * LEASE_MS)
      const { sentMs } = pulse
      const renewedForMs = await site.leftMs(worker)
      const nowMs = systemClock.monotonicMs()
      expect(sentMs).toBeGreaterThan(blockedMs)
      // The store grants at least the lease that the worker counts on, in whole milliseconds.
      expect(sentMs + LEASE_MS).toBeLessThanOrEqual(nowMs + renewedForMs + 2)
      expect(pulse.alive).toBe(true)
    })

    test('expires if the loop is blocked for longer than its patience', async () => {
      const { pulses } = openPulses()
      const [patient, hasty] = [await kept(pulses), await kept(pulses)]
      hasty.pulse.setPatience(LEASE_MS)
      hasty.pulse.turned()
      block(4 * LEASE_MS)
      expect(await site.leftMs(patient.worker)).toBeGreaterThan(0)
      expect(await site.leftMs(hasty.worker)).toBeLessThan(0)
      // It is renewed again once the loop turns.
      await until(async () => expect(await site.leftMs(hasty.worker)).toBeGreaterThan(0))
    })

    test('expires without patience, although the loop turns', async () => {
      const { worker, pulse } = await kept(openPulses().pulses)
      pulse.setPatience(0)
      await until(async () => expect(await site.leftMs(worker)).toBeLessThan(0))
    })

    test('expires when the pulse is stopped', async () => {
      const { worker, pulse } = await kept(openPulses().pulses)
      pulse.stop()
      pulse.stop()
      await until(async () => expect(await site.leftMs(worker)).toBeLessThan(0))
      await until(async () => expect(await site.connections()).toBe(0))
    })

    test('is reported as dead when the store no longer knows the worker', async () => {
      const { worker, pulse } = await kept(openPulses().pulses)
      expect(pulse.alive).toBe(true)
      await store.retire(worker)
      await until(() => expect(pulse.alive).toBe(false))
    })
  })

  describe('the thread', () => {
    test('is one for all workers, with one connection', async () => {
      const { pulses } = openPulses()
      await Promise.all([kept(pulses), kept(pulses), kept(pulses)])
      expect(await site.connections()).toBe(1)
    })

    test('connects again when its connection is lost', async () => {
      const { pulse } = await kept(openPulses().pulses)
      await site.endConnections()
      const lostMs = systemClock.monotonicMs()
      await until(() => expect(pulse.sentMs).toBeGreaterThan(lostMs))
    })

    test('abandons an unanswered renewal well within the lease, and tries again', async () => {
      const proxy = await startProxy(portOf(site.url))
      opened.push(proxy)
      const { pulse } = await kept(openPulses({ thread: site.thread(proxy.url(site.url)) }).pulses)
      proxy.mode = 'silent'
      await until(() => expect(proxy.connections).toBeGreaterThan(1))
      proxy.mode = 'pass'
      const mendedMs = systemClock.monotonicMs()
      await until(() => expect(pulse.sentMs).toBeGreaterThan(mendedMs))
    })

    test('that cannot connect emits one notice, and harms nothing', async () => {
      const { pulses, notices } = openPulses({ thread: site.thread(site.wrongUrl) })
      const [one, two] = [await keep(pulses), await keep(pulses)]
      await until(() => expect(notices).toHaveLength(1))
      expect(notices[0]).toMatch(/^No thread renews the leases of this process \(.*\): a handler that blocks/)
      expect(notices[0]).not.toContain('wrong')
      expect([one.pulse.sentMs, two.pulse.alive]).toEqual([-Infinity, true])
    })

    test('that fails emits one notice, and is replaced while it is needed', async () => {
      let nowMs = 0
      const clock = { ...systemClock, monotonicMs: () => nowMs }
      let starts = 0
      const thread = (): Thread => {
        if (++starts === 2) throw new Error('no threads left')
        return new Thread(`throw new Error('broken')`, { eval: true })
      }
      const { pulses, notices } = openPulses({ clock, thread })
      const { pulse } = await keep(pulses)
      turning.clear()
      await until(() => expect(notices).toEqual([expect.stringContaining('(broken)')]))
      pulse.turned()
      expect(starts).toBe(1)
      for (const expected of [2, 3]) {
        await until(() => {
          nowMs += 10_000
          pulse.turned()
          expect(starts).toBe(expected)
        })
      }
      expect(notices).toHaveLength(1)
    })

    test('ends with the store, and its connection with it', async () => {
      const own = site.open()
      await own.open()
      const worker = ids.worker()
      await own.register(worker, LEASE_MS)
      const pulse = own.keepAlive!(worker, LEASE_MS)!
      turning.add(pulse)
      await until(() => expect(pulse.sentMs).toBeGreaterThan(0))
      expect(await site.connections()).toBe(1)
      await own.close()
      await until(async () => expect(await site.connections()).toBe(0))
      expect(own.keepAlive!(worker, LEASE_MS)).toBeNull()
      await own.close()
    })

    test('that does not end is terminated', async () => {
      const deaf = `require('node:worker_threads').parentPort.on('message', () => undefined)`
      const thread = new Thread(deaf, { eval: true })
      const { pulses } = openPulses({ thread: () => thread })
      await keep(pulses)
      await pulses.close()
      expect(thread.threadId).toBe(-1)
    })
  })
})

test('a lent pool without a url has no thread, and emits one notice about the consequence', async () => {
  const notices: string[] = []
  const database = await freshDatabase(sharedPostgres(18))
  const pool = new Pool({ connectionString: database.url })
  const lent = postgresStore({ pool, onNotice: (line) => notices.push(line) })
  await lent.open()
  expect(lent.keepAlive!(ids.worker(), LEASE_MS)).toBeNull()
  expect(lent.keepAlive!(ids.worker(), LEASE_MS)).toBeNull()
  expect(notices).toEqual([expect.stringContaining('a lent pool without a `url` beside it')])
  await lent.close()
  await pool.end()
  await database.drop()
})

test('ioredis options that cannot be cloned leave a store without a thread, with one notice', () => {
  const notices: string[] = []
  const { control } = oneShard('holdfast')
  const connection = { retryStrategy: () => 50, reconnectOnError: () => false }
  const thread = redisThread({ url: null, connection, db: 0, renew: readScripts().get('renew'), control })
  const pulses = new Pulses({ thread, clock: systemClock, onNotice: (line) => notices.push(line) })
  const pulse = pulses.keepAlive(ids.worker(), LEASE_MS)
  expect(pulse).toMatchObject({ sentMs: -Infinity, alive: true })
  expect(notices).toEqual([expect.stringMatching(/^No thread renews .*could not be cloned/s)])
})
