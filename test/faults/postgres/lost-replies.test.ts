/** The server has done what it was asked, and its answer is lost with the connection. Judged by the history checker. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { freshDatabase, portOf, sharedPostgres, type Database } from '../../support/servers/database.ts'
import { startProxy, type TcpProxy } from '../../support/servers/tcp-proxy.ts'
import { startFleet, type Fleet } from './support/fleet.ts'

let database: Database
let proxy: TcpProxy
let fleet: Fleet | undefined

beforeEach(async () => {
  database = await freshDatabase(sharedPostgres(18))
  proxy = await startProxy(portOf(database.url))
})

afterEach(async () => {
  await fleet?.close()
  fleet = undefined
  await proxy.close()
  await database.drop()
})

async function start(): Promise<Fleet> {
  fleet = await startFleet({ url: database.url, lineUrl: proxy.url(database.url) })
  await fleet.progress(30)
  return fleet
}

/** Of the statements by this name, whoever sends them. */
async function loseReplies(running: Fleet, statement: string, times: number): Promise<void> {
  for (let time = 0; time < times; time++) {
    running.fault(`reply lost: ${statement}`)
    await proxy.loseNextReply((sent) => sent.includes(`holdfast.${statement}_`))
    await running.progress(5)
  }
}

describe('lost answers to enqueues', () => {
  test('make no second job, and no enqueue fails', async () => {
    const running = await start()
    await loseReplies(running, 'enqueue', 6)
    await loseReplies(running, 'enqueueUnique', 6)
    expect(running.refused).toEqual([])
    const { verdict, acked } = await running.judge()
    // Nobody was told otherwise, so each job that was born is one that was acked.
    expect(verdict.counted.born).toBe(acked)
    expect(verdict.counted.unknown).toBeGreaterThanOrEqual(12)
  })
})

describe('lost answers to settles and claims', () => {
  test('write nothing twice, and what was claimed comes back', async () => {
    const running = await start()
    await loseReplies(running, 'cycle', 12)
    const { verdict, events } = await running.judge()
    expect(verdict.counted.settlesAlready).toBeGreaterThan(0)
    // Those that their worker was never told of.
    expect(events.some((event) => event.type === 'move' && event.by === 'release-stranger')).toBe(true)
  })
})

describe('lost answers to all the rest', () => {
  test('lose nothing', async () => {
    const running = await start()
    for (const statement of ['heartbeat', 'promote', 'lead', 'takeOrphans', 'cancel', 'change']) {
      await loseReplies(running, statement, 2)
    }
    expect(running.refused).toEqual([])
    await running.judge()
  })
})
