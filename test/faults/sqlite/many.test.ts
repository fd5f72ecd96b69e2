/** Many processes at the same time: each opens a fresh store, and each gets its share of the work. */
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { until } from '../../support/until.ts'
import { Member } from './support/member.ts'
import { audited, folderForStores, rowsOf } from './support/place.ts'

const folder = folderForStores()
const OPENERS = 5
const ROUNDS = 10
const WORKERS = 4
const FLUSHES = 12
const FLUSH = 1_000

afterEach(() => Member.endAll())

describe('processes at the same time', () => {
  test('all open a directory that is not there yet', async () => {
    const openers = Array.from({ length: OPENERS }, () => Member.start())
    for (let round = 0; round < ROUNDS; round++) {
      const directory = join(folder, `fresh-${round}`)
      await Promise.all(openers.map((opener) => opener.do('openAndClose', directory)))
      const [row] = await rowsOf<{ jobs: number }>(directory, 'select count(*) as jobs from holdfast_job')
      expect(row?.jobs).toBe(OPENERS)
      expect(await audited(directory)).toEqual([])
    }
  })

  test('share the work of one queue, and each gets its part', async ({ annotate }) => {
    const directory = join(folder, 'shared')
    const sender = await Member.withStore(directory)
    const members = await Promise.all(Array.from({ length: WORKERS }, () => Member.withStore(directory)))
    const workers = await Promise.all(members.map((member) => member.do('work', { concurrency: 50 })))
    await sender.do('pause')
    for (let flush = 0; flush < FLUSHES; flush++) await sender.do('enqueue', FLUSH, {})
    await sender.do('resume')
    const patience = { deadlineMs: 40_000, everyMs: 100 }
    await until('all jobs to finish', async () => (await unfinished(directory)) === 0, patience)
    const shares = await rowsOf<{ worker: string; share: number }>(
      directory,
      'select worker, 100.0 * count(*) / (select count(*) from holdfast_ended) as share from holdfast_ended group by worker',
    )
    const byWorker = workers.map((id) => shares.find(({ worker }) => worker === id)?.share ?? 0)
    await annotate(`shares: ${byWorker.map((share) => `${share.toFixed(1)} %`).join(', ')}`)
    expect(Math.min(...byWorker)).toBeGreaterThanOrEqual(5)
  })
})

async function unfinished(directory: string): Promise<number | undefined> {
  const rows = await rowsOf<{ jobs: number }>(
    directory,
    'select sum(scheduled + ready + running) as jobs from holdfast_queue',
  )
  return rows[0]?.jobs
}
