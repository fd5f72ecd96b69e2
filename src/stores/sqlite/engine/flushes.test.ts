import { afterAll, expect, test } from 'vitest'
import { SqliteBench } from '../../../../test/support/sqlite.ts'
import { loadDriver } from '../driver.ts'
import { join } from 'node:path'
import { newFlushId, newJob } from '../../conformance/support.ts'
import { FLUSH_MEMORY_MS, type Retention } from '../../store.ts'

const bench = new SqliteBench({ frozen: true })
afterAll(() => bench.close())

const KEPT: Retention = {
  completedMs: Infinity,
  deadMs: Infinity,
  cancelledMs: Infinity,
  maxCompleted: null,
  maxDead: null,
  maxCancelled: null,
}

test('flushes are forgotten when no repeat of them can come any more, the oldest first', async () => {
  const under = await bench.open()
  const { store } = under
  const { DatabaseSync } = await loadDriver()
  const database = new DatabaseSync(join(bench.directory, 'holdfast.db'))
  const known = (): unknown[] => database.prepare('select id from holdfast_intake order by at, id').all()
  const flush = async () => {
    const id = newFlushId()
    await store.enqueue({ id, jobs: [newJob()] })
    return { id }
  }
  await flush()
  await flush()
  await flush()
  await under.advance(FLUSH_MEMORY_MS)
  const young = await flush()
  await under.advance(1)
  expect(known()).toHaveLength(4)
  await store.upkeep.prune(KEPT, 2)
  expect(known()).toHaveLength(2)
  await store.upkeep.prune(KEPT, 10)
  expect(known()).toEqual([young])
  database.close()
  await under.close()
})
