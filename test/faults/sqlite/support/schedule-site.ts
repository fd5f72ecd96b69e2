/** The schedule soak on an embedded store: the schedulers are processes that share a directory. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteStore } from '../../../../src/stores/sqlite/index.ts'
import { scheduleSoak, type ScheduleOptions, type ScheduleReport } from '../../support/schedule-soak.ts'

export async function scheduleSoakOnSqlite(options: ScheduleOptions): Promise<ScheduleReport> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-schedules-'))
  const directory = join(folder, 'store')
  const store = sqliteStore({ directory, onNotice: () => undefined })
  await store.open()
  try {
    return await scheduleSoak({ url: `file:${directory}`, store, frozenHoldsLock: true }, options)
  } finally {
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
