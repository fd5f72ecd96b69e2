import { Worker as Thread } from 'node:worker_threads'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  freshDatabase,
  portOf,
  sharedPostgres,
  type Database,
} from '../../../../test/support/servers/database.ts'
import { startProxy } from '../../../../test/support/servers/tcp-proxy.ts'
import { makeIds, type WorkerId } from '../../../job/ids.ts'
import { systemClock } from '../../../std/clock.ts'
import { systemRandom } from '../../../std/random.ts'
import type { Pulse, Store } from '../../store.ts'
import type { Executor } from '../executor.ts'
import { pgExecutor } from '../pg/pg-executor.ts'
import { postgresStore } from '../postgres-store.ts'
import { Pulses, type PulseParts } from './pulse.ts'

const ids = makeIds(systemClock, systemRandom)
const LEASE_MS = 600
/** Those whose loop turns while it waits for a fact. */
const turning = new Set<Pulse>()

/** Far beyond what anything here takes: a loaded machine is no failure. */
const until = (fact: () => unknown): Promise<unknown> =>
  vi.waitFor(
    () => {
      for (const pulse of turning) pulse.turned()
      return fact()
    },
    { timeout: 20_000, interval: 10 },
  )

let database: Database
/** Straight to the server, to look and to kill. */
let admin: Executor
let store: Store
const opened: { close(): Promise<void> }[] = []

beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
  admin = pgExecutor({ connectionString: database.url, applicationName: 'admin' })
  store = postgresStore({ url: database.url })
  await store.open()
})

afterEach(async () => {
  turning.clear()
  await Promise.all(opened.splice(0).map((one) => one.close()))
  await until(async () => expect(await connections()).toBe(0))
})

afterAll(async () => {
  await Promise.all([store.close(), admin.close()])
  await database.drop()
})

async function ask<T>(text: string, ...values: string[]): Promise<T> {
  const [row] = await admin.query<{ answer: T }>({ name: '', text }, values)
  return row!.answer
}

/** How much of its lease is left; negative where it is over. */
const leftMs = (worker: WorkerId): Promise<number> =>
  ask('select expires_at - holdfast.now_ms() as answer from holdfast.worker where id = $1::uuid', worker)

const THREADS = `from pg_stat_activity where datname = current_database() and application_name = 'holdfast pulse'`
const connections = (): Promise<number> => ask(`select count(*) as answer ${THREADS}`)

function openPulses(parts: Partial<PulseParts> = {}): { pulses: Pulses; notices: string[] } {
  const notices: string[] = []
  const names = { schema: 'holdfast', prefix: '' }
  const onNotice = (line: string): void => void notices.push(line)
  const pulses = new Pulses({
    connectionString: database.url,
    names,
    clock: systemClock,
    onNotice,
    ...parts,
  })
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

/** With a thread that is up and renews it. */
async function kept(pulses: Pulses): Promise<Kept> {
  const one = await keep(pulses)
  await until(() => expect(one.pulse.sentMs).toBeGreaterThan(0))
  return one
}

/** Nothing of this thread goes on meanwhile: no timer, no answer, no promise. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

describe('a lease with a pulse', () => {
  test('outlasts a loop that is blocked for several leases', async () => {
    const { worker } = await kept(openPulses().pulses)
    block(4 * LEASE_MS)
    expect(await leftMs(worker)).toBeGreaterThan(0)
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
    const renewedForMs = await leftMs(worker)
    const nowMs = systemClock.monotonicMs()
    expect(sentMs).toBeGreaterThan(blockedMs)
    // What the store gave is at least what the worker counts on. It tells whole milliseconds.
    expect(sentMs + LEASE_MS).toBeLessThanOrEqual(nowMs + renewedForMs + 2)
    expect(pulse.alive).toBe(true)
  })

  test('runs out where the loop is blocked for longer than its patience', async () => {
    const { pulses } = openPulses()
    const [patient, hasty] = [await kept(pulses), await kept(pulses)]
    hasty.pulse.setPatience(LEASE_MS)
    hasty.pulse.turned()
    block(4 * LEASE_MS)
    expect(await leftMs(patient.worker)).toBeGreaterThan(0)
    expect(await leftMs(hasty.worker)).toBeLessThan(0)
    // And is taken up again when the loop turns.
    await until(async () => expect(await leftMs(hasty.worker)).toBeGreaterThan(0))
  })

  test('runs out where there is no patience, although the loop turns', async () => {
    const { worker, pulse } = await kept(openPulses().pulses)
    pulse.setPatience(0)
    await until(async () => expect(await leftMs(worker)).toBeLessThan(0))
  })

  test('runs out when the pulse is stopped', async () => {
    const { worker, pulse } = await kept(openPulses().pulses)
    pulse.stop()
    pulse.stop()
    await until(async () => expect(await leftMs(worker)).toBeLessThan(0))
    await until(async () => expect(await connections()).toBe(0))
  })

  test('says so when the store does not know the worker any more', async () => {
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
    expect(await connections()).toBe(1)
  })

  test('connects again when its connection is lost', async () => {
    const { pulse } = await kept(openPulses().pulses)
    await ask(`select count(pg_terminate_backend(pid)) as answer ${THREADS}`)
    const lostMs = systemClock.monotonicMs()
    await until(() => expect(pulse.sentMs).toBeGreaterThan(lostMs))
  })

  test('gives up a renewal that is not answered, well within the lease, and tries again', async () => {
    const proxy = await startProxy(portOf(database.url))
    opened.push(proxy)
    const { pulse } = await kept(openPulses({ connectionString: proxy.url(database.url) }).pulses)
    proxy.mode = 'silent'
    await until(() => expect(proxy.connections).toBeGreaterThan(1))
    proxy.mode = 'pass'
    const mendedMs = systemClock.monotonicMs()
    await until(() => expect(pulse.sentMs).toBeGreaterThan(mendedMs))
  })

  test('that cannot connect says so once, and harms nobody', async () => {
    const url = new URL(database.url)
    url.password = 'wrong'
    url.pathname = '/nowhere'
    const { pulses, notices } = openPulses({ connectionString: url.href })
    const [one, two] = [await keep(pulses), await keep(pulses)]
    await until(() => expect(notices).toHaveLength(1))
    expect(notices[0]).toMatch(/^No thread renews the leases of this process \(.*\): a handler that blocks/)
    expect(notices[0]).not.toContain('wrong')
    expect([one.pulse.sentMs, two.pulse.alive]).toEqual([-Infinity, true])
  })

  test('that fails is said once, and replaced while anybody needs it', async () => {
    let nowMs = 0
    const clock = { ...systemClock, monotonicMs: () => nowMs }
    let starts = 0
    const startThread = (): Thread => {
      if (++starts === 2) throw new Error('no threads left')
      return new Thread(`throw new Error('broken')`, { eval: true })
    }
    const { pulses, notices } = openPulses({ clock, startThread })
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
    const own = postgresStore({ url: database.url })
    await own.open()
    const worker = ids.worker()
    await own.register(worker, LEASE_MS)
    const pulse = own.keepAlive!(worker, LEASE_MS)!
    turning.add(pulse)
    await until(() => expect(pulse.sentMs).toBeGreaterThan(0))
    expect(await connections()).toBe(1)
    await own.close()
    await until(async () => expect(await connections()).toBe(0))
    expect(own.keepAlive!(worker, LEASE_MS)).toBeNull()
    await own.close()
  })

  test('that does not end is ended', async () => {
    const deaf = `require('node:worker_threads').parentPort.on('message', () => undefined)`
    const thread = new Thread(deaf, { eval: true })
    const { pulses } = openPulses({ startThread: () => thread })
    await keep(pulses)
    await pulses.close()
    expect(thread.threadId).toBe(-1)
  })
})

test('a lent pool without a url has no thread, and says once what is lost by that', async () => {
  const notices: string[] = []
  const { Pool } = await import('pg')
  const pool = new Pool({ connectionString: database.url })
  const lent = postgresStore({ pool, onNotice: (line) => notices.push(line) })
  await lent.open()
  expect(lent.keepAlive!(ids.worker(), LEASE_MS)).toBeNull()
  expect(lent.keepAlive!(ids.worker(), LEASE_MS)).toBeNull()
  expect(notices).toEqual([expect.stringContaining('a lent pool without a `url` beside it')])
  await lent.close()
  await pool.end()
})
