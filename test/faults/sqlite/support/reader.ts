/** Runs calls on the files of a store as its thread does, but on this thread, so that hundreds of stores can be read. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { JobId } from '../../../../src/job/ids.ts'
import type { JobRecord } from '../../../../src/job/record.ts'
import { systemClock } from '../../../../src/std/clock.ts'
import { systemRandom } from '../../../../src/std/random.ts'
import { loadDriver } from '../../../../src/stores/sqlite/driver.ts'
import { Db, readSql } from '../../../../src/stores/sqlite/engine/db.ts'
import { Engine } from '../../../../src/stores/sqlite/engine/engine.ts'
import { Runner } from '../../../../src/stores/sqlite/engine/runner.ts'
import type { StepAnswer, StepArgs, StepName } from '../../../../src/stores/sqlite/engine/steps.ts'
import { prepareDirectory } from '../../../../src/stores/sqlite/files/directory.ts'
import { refuseDamagedLog } from '../../../../src/stores/sqlite/files/log-check.ts'
import { openDatabase } from '../../../../src/stores/sqlite/open-database.ts'
import { storeError } from '../../../../src/stores/sqlite/sqlite-errors.ts'

const driver = await loadDriver()
const sql = readSql()
const PAGE = 50

export interface Files {
  readonly database: Buffer
  readonly wal?: Buffer
}

/** Makes a directory that looks as if a store had been used there. */
export function writeStore(directory: string, { database, wal }: Files): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  writeFileSync(join(directory, 'holdfast.db'), database, { mode: 0o600 })
  if (wal !== undefined) writeFileSync(join(directory, 'holdfast.db-wal'), wal, { mode: 0o600 })
  writeFileSync(join(directory, 'bell'), '.', { mode: 0o600 })
}

export type Ask = <Name extends StepName>(name: Name, ...args: StepArgs<Name>) => StepAnswer<Name>

/** Opens the store, and closes it with everything in the database file. Throws what a caller of the store would be told. */
export function withCalls<T>(directory: string, work: (ask: Ask) => T): T {
  const files = prepareDirectory(directory, () => undefined)
  refuseDamagedLog(files.database)
  const database = open(files.database)
  const engine = new Engine({
    db: new Db(database, sql.statements),
    clock: systemClock,
    random: systemRandom,
    processes: { own: null, isGone: () => false },
  })
  const runner = new Runner({ database, engine, lockHolder: () => null })
  const ask: Ask = (name, ...args) => {
    const [ran] = runner.run([{ name, args }]).outcomes
    if (ran === undefined) throw new Error('Nothing was run.')
    if ('error' in ran[1]) throw ran[1].error
    return ran[1].value as StepAnswer<typeof name>
  }
  try {
    const answer = work(ask)
    database.exec('pragma wal_checkpoint(truncate)')
    return answer
  } finally {
    database.close()
  }
}

/** All jobs, page by page. */
export function readJobs(directory: string): readonly JobRecord[] {
  return withCalls(directory, (ask) => {
    ask('queues')
    const jobs: JobRecord[] = []
    let after: JobId | null = null
    do {
      const page: StepAnswer<'list'> = ask('list', { limit: PAGE, after })
      jobs.push(...page.jobs)
      after = page.next
    } while (after !== null)
    return jobs
  })
}

function open(path: string): ReturnType<typeof openDatabase> {
  try {
    return openDatabase(driver, path, 'full', sql.tables)
  } catch (error) {
    throw storeError(error, () => null)
  }
}
