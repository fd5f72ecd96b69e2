/** What becomes of the jobs of a process that is gone, or that only seems to be. */
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { eventually } from '../../support/until.ts'
import { apartMissing, Member } from './support/member.ts'
import { folderForStores, rowsOf } from './support/place.ts'

const folder = folderForStores()
const LEASE_MS = 30_000
const SLOTS = 2
let stores = 0

afterEach(() => Member.endAll())

function freshDirectory(): string {
  return join(folder, `store-${stores++}`)
}

async function crashesOf(directory: string, ids: readonly string[]): Promise<(number | undefined)[]> {
  const rows = await rowsOf<{ id: string; crashes: number }>(
    directory,
    'select id, crashes from holdfast_job',
  )
  return ids.map((id) => rows.find((row) => row.id === id)?.crashes)
}

async function expiryOf(directory: string, worker: string): Promise<number> {
  const sql = 'select expires_at as until from holdfast_worker where id = ?'
  const rows = await rowsOf<{ until: number }>(directory, sql, worker)
  return rows[0]?.until ?? NaN
}

/** The first told of so many jobs that began. */
async function begunBy(member: Member, ids: readonly string[]): Promise<string[]> {
  const first = await Promise.any(ids.map((id) => member.hears('began', id)))
  const others = ids.filter((id) => id !== first.job)
  const second = await Promise.any(others.map((id) => member.hears('began', id)))
  return [first.job, second.job]
}

describe('a worker that is killed while it runs jobs', () => {
  test('is replaced at once by a worker that starts then, and only jobs that may have run count a crash', async ({
    annotate,
  }) => {
    const directory = freshDirectory()
    const victim = await Member.withStore(directory)
    const next = await Member.withStore(directory)
    await next.do('holdNothing')
    const { ids } = await next.do('enqueue', 6, { hold: true })
    await victim.do('work', { concurrency: SLOTS, batchSize: 6, lease: LEASE_MS })
    const ran = await begunBy(victim, ids)
    const killed = performance.now()
    await victim.kill()
    await next.do('work', { concurrency: 10, lease: LEASE_MS })
    await Promise.all(ids.filter((id) => !ran.includes(id)).map((id) => next.hears('began', id)))
    const tookMs = performance.now() - killed
    await annotate(`jobs that had not run began elsewhere ${tookMs.toFixed(0)} ms after the kill`)
    expect(tookMs).toBeLessThan(LEASE_MS / 3)
    // What ran waits a moment before it is tried again, as after any crash, and is then tried alone.
    await Promise.all(ran.map((id) => next.hears('began', id)))
    expect(await crashesOf(directory, ids)).toEqual(ids.map((id) => (ran.includes(id) ? 1 : 0)))
  })

  test('is replaced within seconds by one that runs already, even if the dead process led', async ({
    annotate,
  }) => {
    const directory = freshDirectory()
    const victim = await Member.withStore(directory)
    await victim.do('work', { concurrency: SLOTS, lease: LEASE_MS })
    const { ids } = await victim.do('enqueue', SLOTS, { hold: true })
    await Promise.all(ids.map((id) => victim.hears('began', id)))
    const next = await Member.withStore(directory)
    await next.do('holdNothing')
    await next.do('work', { concurrency: 10, lease: LEASE_MS })
    const killed = performance.now()
    await victim.kill()
    await Promise.all(ids.map((id) => next.hears('began', id)))
    const tookMs = performance.now() - killed
    await annotate(`its jobs began elsewhere ${tookMs.toFixed(0)} ms after the kill`)
    expect(tookMs).toBeLessThan(LEASE_MS / 3)
  })
})

const missing = apartMissing()

describe.skipIf(missing !== '')(
  `a worker in another container of this host${missing && ` (${missing})`}`,
  () => {
    test('shares the store and wakes up, and is rescued when its lease is over, not before', async ({
      annotate,
    }) => {
      const directory = freshDirectory()
      const leaseMs = 2_000
      const here = await Member.withStore(directory)
      await here.do('holdNothing')
      const apart = await Member.withStore(directory, Member.startApart())
      const worker = await apart.do('work', { poll: '30s', concurrency: 5, lease: leaseMs })
      const { ids, atMs } = await here.do('enqueue', 2, { hold: true })
      const began = await Promise.all(ids.map((id) => apart.hears('began', id)))
      await annotate(`woke up after ${(began[0]!.atMs - atMs).toFixed(1)} ms`)
      // This one leads and rescues from now on; while the other lives, its jobs are its own.
      await here.do('work', { poll: '30s', concurrency: 5, lease: leaseMs })
      const expiresAt = await expiryOf(directory, worker)
      // Renewed beyond a whole lease: everybody here had the time to take its jobs.
      await eventually(async () =>
        expect(await expiryOf(directory, worker)).toBeGreaterThan(expiresAt + leaseMs),
      )
      expect(await crashesOf(directory, ids)).toEqual([0, 0])
      expect(here.told).toEqual([])
      const killed = performance.now()
      await apart.kill()
      await Promise.all(ids.map((id) => here.hears('began', id)))
      await annotate(`its jobs began elsewhere ${(performance.now() - killed).toFixed(0)} ms after the kill`)
      expect(await crashesOf(directory, ids)).toEqual([1, 1])
    })
  },
)
