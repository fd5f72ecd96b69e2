import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  freshDatabase,
  portOf,
  sharedPostgres,
  type Database,
} from '../../../../test/support/servers/database.ts'
import { startProxy, type TcpProxy } from '../../../../test/support/servers/tcp-proxy.ts'
import { Signal } from '../../../../test/support/signal.ts'
import { eventually } from '../../../../test/support/until.ts'
import { systemClock } from '../../../std/clock.ts'
import { VirtualClock } from '../../../std/virtual-clock.ts'
import type { Executor, Listening, Statement } from '../executor.ts'
import { pgExecutor } from './pg-executor.ts'
import type { PgParts } from './pg-executor.ts'

let database: Database
let proxy: TcpProxy
/** Bypasses the proxy. */
let admin: Executor
const opened: Executor[] = []
/** Notified of every payload, gap and notice. */
const news = new Signal()

beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
  admin = pgExecutor({ connectionString: database.url, applicationName: 'admin' })
})

afterAll(async () => {
  await admin.close()
  await database.drop()
})

beforeEach(async () => {
  proxy = await startProxy(portOf(database.url))
})

afterEach(async () => {
  await Promise.all(opened.splice(0).map((executor) => executor.close()))
  await proxy.close()
})

const sql = (name: string, text: string): Statement => ({ name, text })
const terminateListeners = sql(
  'terminate',
  `select count(pg_terminate_backend(pid)) as n from pg_stat_activity
   where datname = current_database() and application_name = 'holdfast' and query ~* 'listen|select 1'`,
)
const notifySql = sql('notify', 'select pg_notify($1::text, $2::text)')
const notify = async (channel: string, payload: string): Promise<void> => {
  await admin.query(notifySql, [channel, payload])
}

function connect(parts: Partial<PgParts> = {}): { executor: Executor; notices: string[] } {
  const notices: string[] = []
  const connectionString = proxy.url(database.url)
  const executor = pgExecutor({ connectionString, connections: 1, onNotice: noteTo(notices) }, parts)
  opened.push(executor)
  return { executor, notices }
}

function noteTo(list: string[]): (line: string) => void {
  return (line) => {
    list.push(line)
    news.notify()
  }
}

interface Heard {
  readonly payloads: string[]
  gaps: number
  readonly listening: Listening
}

async function listen(executor: Executor, channel: string): Promise<Heard> {
  const heard = { payloads: [] as string[], gaps: 0 }
  const listening = await executor.listen(channel, noteTo(heard.payloads), () => {
    heard.gaps++
    news.notify()
  })
  return Object.assign(heard, { listening })
}

describe('listening', () => {
  test('receives the payloads of its channel, in order, and nothing else', async () => {
    const { executor, notices } = connect()
    const heard = await listen(executor, 'Wake "up"')
    expect(heard.listening.listening).toBe(true)
    await notify('other', 'no')
    for (const payload of ['a', '', 'ü']) await notify('Wake "up"', payload)
    await news.until(() => expect(heard.payloads).toEqual(['a', '', 'ü']))
    expect(heard.gaps).toBe(0)
    expect(notices).toEqual([])
  })

  test('uses one connection, however many listeners there are', async () => {
    const { executor } = connect()
    const all = await Promise.all(['a', 'b', 'b', 'c'].map((channel) => listen(executor, channel)))
    // The other one belongs to the pool. It proved that notifications arrive.
    expect(proxy.connections).toBe(2)
    await Promise.all(['a', 'b', 'c'].map((channel) => notify(channel, channel)))
    await news.until(() => expect(all.map(({ payloads }) => payloads)).toEqual([['a'], ['b'], ['b'], ['c']]))
  })

  test('stops one listener at a time, and closes the connection with the last one', async () => {
    const { executor } = connect()
    const first = await listen(executor, 'a')
    const second = await listen(executor, 'a')
    const third = await listen(executor, 'b')
    await first.listening.stop()
    await third.listening.stop()
    await third.listening.stop()
    await notify('b', 'no')
    await notify('a', 'yes')
    await news.until(() => expect(second.payloads).toEqual(['yes']))
    expect([first.payloads, third.payloads]).toEqual([[], []])
    await second.listening.stop()
    await proxy.changed.until(() => proxy.connections === 1)
    const again = await listen(executor, 'a')
    await notify('a', 'again')
    await news.until(() => expect(again.payloads).toEqual(['again']))
  })
})

describe('a listener whose connection is lost', () => {
  test('emits one notice if the server refuses it from then on', async () => {
    await admin.script("create role listening_user login password 'pw'")
    const url = new URL(proxy.url(database.url))
    url.username = 'listening_user'
    url.password = 'pw'
    const notices: string[] = []
    const executor = pgExecutor({
      connectionString: url.href,
      connections: 1,
      onNotice: noteTo(notices),
    })
    opened.push(executor)
    const { listening } = await listen(executor, 'a')
    await admin.script('alter role listening_user nologin')
    proxy.cutAll()
    await news.until(() => expect(notices).toEqual([expect.stringMatching(/polling only.*28000/)]))
    await listening.stop()
    await admin.script('drop role listening_user')
  })

  test('listens again after a cut, and reports the gap once', async () => {
    const { executor, notices } = connect()
    const [a, b] = [await listen(executor, 'a'), await listen(executor, 'b')]
    proxy.cutAll()
    await news.until(() => expect([a.gaps, b.gaps]).toEqual([1, 1]))
    await notify('a', 'after')
    await news.until(() => expect(a.payloads).toEqual(['after']))
    expect([a.gaps, b.gaps]).toEqual([1, 1])
    expect(notices).toEqual([])
  })

  test('listens again when the server terminates it', async () => {
    const { executor } = connect()
    const heard = await listen(executor, 'a')
    await admin.query(terminateListeners, [])
    await news.until(() => expect(heard.gaps).toBe(1))
    await notify('a', 'after')
    await news.until(() => expect(heard.payloads).toEqual(['after']))
  })

  test('keeps trying while nobody answers, and accepts new listeners meanwhile', async () => {
    const { executor } = connect()
    const first = await listen(executor, 'a')
    proxy.mode = 'refuse'
    proxy.cutAll()
    const second = await listen(executor, 'b')
    expect(second.listening.listening).toBe(true)
    proxy.mode = 'pass'
    await news.until(() => expect([first.gaps, second.gaps]).toEqual([1, 1]))
    await notify('b', 'after')
    await news.until(() => expect(second.payloads).toEqual(['after']))
  })

  test('may be missing at the start', async () => {
    proxy.mode = 'refuse'
    const { executor } = connect()
    const heard = await listen(executor, 'a')
    proxy.mode = 'pass'
    await news.until(() => expect(heard.gaps).toBe(1))
    await notify('a', 'after')
    await news.until(() => expect(heard.payloads).toEqual(['after']))
  })

  test('is found to be silent by a query', async () => {
    const clock = new VirtualClock()
    const { executor } = connect({ clock })
    const heard = await listen(executor, 'a')
    proxy.mode = 'silent'
    proxy.mode = 'pass'
    // It sends a query after 30 s, and waits 5 s for the answer.
    await clock.advance(30_000)
    expect(heard.gaps).toBe(0)
    await clock.advance(5_000)
    await eventually(async () => {
      await clock.advance(100)
      expect(heard.gaps).toBe(1)
    })
    await notify('a', 'after')
    await news.until(() => expect(heard.payloads).toEqual(['after']))
  })

  test('backs off, up to five seconds', async () => {
    const pauses: number[] = []
    const clock = {
      ...systemClock,
      after(ms: number, fn: () => void) {
        pauses.push(ms)
        news.notify()
        // Fires soon, whatever the delay.
        return systemClock.after(1, fn)
      },
    }
    const random = { float: () => 0.1, uint32: () => 7 }
    proxy.mode = 'refuse'
    const { executor } = connect({ clock, random })
    await listen(executor, 'a')
    const waits = (): number[] => pauses.filter((ms) => ms % 95 === 0)
    await news.until(() => expect(waits().length).toBeGreaterThan(8))
    expect(waits().slice(0, 8)).toEqual([95, 190, 380, 760, 1_520, 3_040, 4_750, 4_750])
  })
})
