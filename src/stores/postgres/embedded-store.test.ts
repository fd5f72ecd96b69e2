/** The store inside the process, across two lives of it. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { newFlushId, newJobs, newWorkerId, QUEUE } from '../conformance/support.ts'
import { embeddedStore } from './embedded-store.ts'

let directory: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'holdfast-embedded-'))
})

afterEach(() => rm(directory, { recursive: true }))

test(
  'of the jobs that a process left behind only those that can have been running are suspects',
  { timeout: 60_000 },
  async () => {
    const jobs = newJobs(3)
    const first = embeddedStore({ directory })
    await first.open()
    const worker = newWorkerId()
    await first.register(worker, 30_000, 1)
    await first.enqueue({ id: newFlushId(), jobs })
    const claim = { queue: QUEUE, limit: 3, suspects: true }
    const { leases } = await first.cycle({ worker, settle: [], claim })
    expect(leases[0]?.jobs).toHaveLength(3)
    await first.close()

    const second = embeddedStore({ directory })
    await second.open()
    const records = await Promise.all(jobs.map(({ id }) => second.admin.get(id)))
    expect(records.map((record) => [record?.state, record?.crashes])).toEqual([
      ['scheduled', 1],
      ['ready', 0],
      ['ready', 0],
    ])
    await second.close()
  },
)
