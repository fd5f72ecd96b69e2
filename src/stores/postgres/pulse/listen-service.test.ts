/** Listening on the connection of the heartbeat thread, on a real server. */
import type { Worker as Thread } from 'node:worker_threads'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import {
  freshDatabase,
  portOf,
  sharedPostgres,
  type Database,
} from '../../../../test/support/servers/database.ts'
import { startProxy } from '../../../../test/support/servers/tcp-proxy.ts'
import { Signal } from '../../../../test/support/signal.ts'
import { eventually } from '../../../../test/support/until.ts'
import { deferred } from '../../../../test/support/virtual.ts'
import { makeIds } from '../../../job/ids.ts'
import { systemClock, type Clock } from '../../../std/clock.ts'
import { systemRandom } from '../../../std/random.ts'
import { Pulses } from '../../pulse/pulse.ts'
import type { Pulse, Store } from '../../store.ts'
import type { Executor, Listening } from '../executor.ts'
import { pgExecutor } from '../pg/pg-executor.ts'
import { postgresStore } from '../postgres-store.ts'
import { postgresThread } from '../start-pulse.ts'

const ids = makeIds(systemClock, systemRandom)
/** Short, because a silent connection is noticed by a renewal, and a test blocks for longer than a lease. */
const LEASE_MS = 1_000

let database: Database
/** Has the schema, and registers workers. */
let store: Store
/** Bypasses the proxy. */
let admin: Executor
const opened: { close(): Promise<void> }[] = []
/** Notified of every payload and gap. */
const news = new Signal()

beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
  admin = pgExecutor({ connectionString: database.url, applicationName: 'admin' })
  store = postgresStore({ url: withName(database.url, 'store') })
  await store.open()
}, 60_000)

afterEach(async () => {
  await Promise.all(opened.splice(0).map((one) => one.close()))
  await eventually(async () => expect(await connections()).toEqual({ main: 0, thread: 0 }))
})

afterAll(async () => {
  await Promise.all([store.close(), admin.close()])
  await database.drop()
})

function withName(url: string, name: string): string {
  const named = new URL(url)
  named.searchParams.set('application_name', name)
  return named.href
}

const CONNECTIONS = `from pg_stat_activity where datname = current_database() and application_name`

async function connections(): Promise<{ main: number; thread: number }> {
  const text = `select count(*) filter (where application_name = 'holdfast') as main,
                       count(*) filter (where application_name = 'holdfast pulse') as thread
                ${CONNECTIONS} like 'holdfast%'`
  const [row] = await admin.query<{ main: number; thread: number }>({ name: 'count', text }, [])
  return row!
}

const endThreadConnection = (): Promise<unknown> =>
  admin.query(
    { name: 'end', text: `select count(pg_terminate_backend(pid)) ${CONNECTIONS} = 'holdfast pulse'` },
    [],
  )

async function notify(channel: string, payload: string): Promise<void> {
  await admin.query({ name: 'notify', text: 'select pg_notify($1::text, $2::text)' }, [channel, payload])
}

interface Heard {
  readonly payloads: string[]
  gaps: number
  readonly listening: Listening
}

interface Process {
  readonly executor: Executor
  readonly notices: string[]
  /** Starts the thread, if there is none, and waits until it renews. */
  keep(): Promise<Pulse>
  listen(channel: string): Promise<Heard>
  /** The newest thread. */
  thread(): Thread
}

/** The relevant parts of a process: statements, a heartbeat thread and a listener. */
function startProcess(url = database.url, clock: Clock = systemClock): Process {
  const notices: string[] = []
  const onNotice = (line: string): void => void notices.push(line)
  const start = postgresThread(url, { schema: 'holdfast', prefix: '' }) as () => Thread
  let newest: Thread
  const pulses = new Pulses({ thread: () => (newest = start()), clock, onNotice })
  const executor = pgExecutor({ connectionString: url, connections: 1, onNotice }, { thread: pulses })
  opened.push(pulses, executor)
  return {
    executor,
    notices,
    thread: () => newest,
    async keep() {
      const worker = ids.worker()
      await store.register(worker, LEASE_MS)
      const pulse = pulses.keepAlive(worker, LEASE_MS)!
      pulse.setPatience(60_000)
      await eventually(() => expect(pulse.sentMs).toBeGreaterThan(0))
      return pulse
    },
    async listen(channel) {
      const heard = { payloads: [] as string[], gaps: 0 }
      const onPayload = (payload: string): void => {
        heard.payloads.push(payload)
        news.notify()
      }
      const onGap = (): void => {
        heard.gaps++
        news.notify()
      }
      const listening = await executor.listen(channel, onPayload, onGap)
      return Object.assign(heard, { listening })
    },
  }
}

/** Blocks this thread: no timer fires, no answer is read, no promise settles. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

const inThread = async (): Promise<void> => {
  await eventually(async () => expect(await connections()).toEqual({ main: 1, thread: 1 }))
}

describe('a process with a heartbeat thread', () => {
  test('listens on the connection of the thread', async () => {
    const process = startProcess()
    await process.keep()
    const [a, b] = [await process.listen('a'), await process.listen('b')]
    expect(a.listening.listening).toBe(true)
    await inThread()
    for (const payload of ['1', '', 'ü']) await notify('a', payload)
    await notify('b', '2')
    await news.until(() => expect([a.payloads, b.payloads]).toEqual([['1', '', 'ü'], ['2']]))
    await a.listening.stop()
    await notify('a', 'no')
    await notify('b', '3')
    await news.until(() => expect(b.payloads).toEqual(['2', '3']))
    expect([a.payloads.length, a.gaps, b.gaps]).toEqual([3, 0, 0])
    expect(process.notices).toEqual([])
  })

  test('moves its listener there when the thread starts, and misses nothing', async () => {
    const process = startProcess()
    const heard = await process.listen('a')
    expect(await connections()).toEqual({ main: 2, thread: 0 })
    await process.keep()
    let sent = 0
    await eventually(async () => {
      await notify('a', String(sent++))
      expect(await connections()).toEqual({ main: 1, thread: 1 })
    })
    await news.until(() => expect(heard.payloads).toContain(String(sent - 1)))
    expect(new Set(heard.payloads)).toEqual(new Set(Array.from({ length: sent }, (_, n) => String(n))))
    await news.until(() => expect(heard.gaps).toBe(1))
  })

  test('keeps the connection while it listens, whether there are leases to renew or not', async () => {
    const process = startProcess()
    const pulse = await process.keep()
    const heard = await process.listen('a')
    await inThread()
    pulse.stop()
    await notify('a', 'still')
    await news.until(() => expect(heard.payloads).toEqual(['still']))
    expect(await connections()).toEqual({ main: 1, thread: 1 })
    await heard.listening.stop()
    await eventually(async () => expect(await connections()).toEqual({ main: 1, thread: 0 }))
    expect(heard.gaps).toBe(0)
  })

  test('keeps renewing after the last listener has stopped', async () => {
    const process = startProcess()
    const pulse = await process.keep()
    const first = await process.listen('a')
    await first.listening.stop()
    const stoppedMs = systemClock.monotonicMs()
    await eventually(() => {
      pulse.turned()
      expect(pulse.sentMs).toBeGreaterThan(stoppedMs)
    })
    const second = await process.listen('b')
    await notify('a', 'no')
    await notify('b', 'yes')
    await news.until(() => expect(second.payloads).toEqual(['yes']))
    expect([first.payloads, await connections()]).toEqual([[], { main: 1, thread: 1 }])
  })

  test('listens again after the connection is lost, and reports the gap', async () => {
    const process = startProcess()
    const pulse = await process.keep()
    const heard = await process.listen('a')
    await endThreadConnection()
    await news.until(() => expect(heard.gaps).toBe(1))
    await notify('a', 'after')
    await news.until(() => expect(heard.payloads).toEqual(['after']))
    await inThread()
    const lostMs = systemClock.monotonicMs()
    await eventually(() => {
      pulse.turned()
      expect(pulse.sentMs).toBeGreaterThan(lostMs)
    })
  })

  test('notices a silent connection by a renewal', async () => {
    const proxy = await startProxy(portOf(database.url))
    opened.push(proxy)
    const process = startProcess(proxy.url(database.url))
    const pulse = await process.keep()
    const heard = await process.listen('a')
    proxy.mode = 'silent'
    proxy.mode = 'pass'
    await eventually(() => {
      pulse.turned()
      expect(heard.gaps).toBe(1)
    })
    await notify('a', 'after')
    await news.until(() => expect(heard.payloads).toEqual(['after']))
  })

  test('listens on a separate connection while there is no thread, and then on that of the next thread', async () => {
    let aheadMs = 0
    const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs }
    const process = startProcess(database.url, clock)
    const pulse = await process.keep()
    const heard = await process.listen('a')
    await process.thread().terminate()
    await news.until(() => expect(heard.gaps).toBe(1))
    await notify('a', 'own')
    await news.until(() => expect(heard.payloads).toEqual(['own']))
    expect(await connections()).toEqual({ main: 2, thread: 0 })
    // The thread is not restarted at once.
    aheadMs = 10_000
    pulse.turned()
    await inThread()
    await news.until(() => expect(heard.gaps).toBe(2))
    await notify('a', 'thread')
    await news.until(() => expect(heard.payloads).toEqual(['own', 'thread']))
  })

  test('renews while the event loop is blocked, and reports a gap for notifications that did not fit', async () => {
    const process = startProcess()
    const pulse = await process.keep()
    const heard = await process.listen('a')
    const flood = `select count(pg_notify('a', n::text)) from generate_series(1, 5000) as n, pg_sleep(0.5)`
    const flooding = admin.query({ name: 'flood', text: flood }, [])
    await eventually(async () => {
      const sleeping = `select count(*) as n ${CONNECTIONS} = 'admin' and wait_event = 'PgSleep'`
      expect(await admin.query({ name: 'sleeping', text: sleeping }, [])).toEqual([{ n: 1 }])
    })
    pulse.turned()
    const blockedMs = systemClock.monotonicMs()
    block(LEASE_MS * 1.5)
    expect(pulse.sentMs).toBeGreaterThan(blockedMs)
    await flooding
    await news.until(() => expect(heard.gaps).toBeGreaterThan(0))
    await notify('a', 'last')
    await news.until(() => expect(heard.payloads.at(-1)).toBe('last'))
    expect(heard.payloads.length).toBeLessThan(5_000)
  })
})

describe('a process whose heartbeat thread does not start', () => {
  test('listens on a connection of its own', async () => {
    const notices: string[] = []
    const pulses = new Pulses({
      thread: () => {
        throw new Error('no threads left')
      },
      clock: systemClock,
      onNotice: (line) => notices.push(line),
    })
    const executor = pgExecutor({ connectionString: database.url, connections: 1 }, { thread: pulses })
    opened.push(pulses, executor)
    pulses.keepAlive(ids.worker(), LEASE_MS)
    const heard = deferred<string>()
    await executor.listen(
      'a',
      (payload) => heard.resolve(payload),
      () => undefined,
    )
    await notify('a', 'own')
    expect(await heard.promise).toBe('own')
    expect(await connections()).toEqual({ main: 2, thread: 0 })
    expect(notices).toHaveLength(1)
  })

  test('does not wait for a thread that ends or hangs at its start', async () => {
    const { Worker } = await import('node:worker_threads')
    for (const text of [`throw new Error('broken')`, `setInterval(() => undefined, 1000)`]) {
      const pulses = new Pulses({
        thread: () => new Worker(text, { eval: true }),
        clock: systemClock,
        onNotice: () => undefined,
      })
      const executor = pgExecutor({ connectionString: database.url, connections: 1 }, { thread: pulses })
      opened.push(pulses, executor)
      pulses.keepAlive(ids.worker(), LEASE_MS)
      const heard = deferred<string>()
      await executor.listen(
        'a',
        (payload) => heard.resolve(payload),
        () => undefined,
      )
      await notify('a', 'own')
      expect(await heard.promise).toBe('own')
      await Promise.all([executor.close(), pulses.close()])
    }
  })
})
