/** A copy of an embedded store, made while processes use it. */
import { closeSync, existsSync, openSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { HoldfastError } from '../../errors.ts'
import type { JobId } from '../../job/ids.ts'
import { systemClock } from '../../std/clock.ts'
import { systemRandom } from '../../std/random.ts'
import { loadDriver, type Database } from './driver.ts'
import { damaged } from './engine/damage.ts'
import { Db, readSql } from './engine/db.ts'
import { Engine } from './engine/engine.ts'
import { list } from './engine/list.ts'
import { DATABASE } from './files/directory.ts'
import { refuseDamagedLog } from './files/log-check.ts'
import { atOneMoment, checkOwner } from './open-database.ts'
import { storeError } from './sqlite-errors.ts'

/** Longer than any transaction of ours takes. */
const BUSY_MS = 10_000
/** Jobs that are checked at a time. */
const PAGE = 500

/**
 * Writes the database of a directory to a new file, as it is at one moment, and checks the copy. To be called in a process
 * that has not opened the store.
 */
export async function backupStore(directory: string, file: string): Promise<void> {
  const source = join(resolve(directory), DATABASE)
  const target = resolve(file)
  if (!existsSync(source))
    throw new HoldfastError('HF_STORE_MISSING', `There is no ${source}.`, {
      hint: 'Name the directory of the embedded store: --store file:….',
    })
  const { DatabaseSync } = await withoutSqliteWarning(loadDriver)
  reserve(target)
  try {
    refuseDamagedLog(source)
    withOpen(new DatabaseSync(source), (database) => {
      database.exec(`pragma busy_timeout = ${BUSY_MS}; pragma cell_size_check = on`)
      if (!atOneMoment(database, () => checkOwner(database, source))) throw emptied(source)
      database.prepare('vacuum into ?').run(target)
    })
    withOpen(new DatabaseSync(target), (copy) => checkCopy(copy, target))
  } catch (error) {
    rmSync(target, { force: true })
    throw storeError(error, () => null)
  }
}

/** For the owner alone, and never over a file that is there. */
function reserve(target: string): void {
  try {
    closeSync(openSync(target, 'wx', 0o600))
  } catch (cause) {
    const isThere = (cause as { readonly code?: unknown }).code === 'EEXIST'
    const why = isThere ? `${target} exists already.` : `${target} cannot be written.`
    throw new HoldfastError('HF_BAD_OPTION', why, { hint: 'Name a new file in a directory of yours.', cause })
  }
}

function checkCopy(copy: Database, target: string): void {
  const { integrity_check: found } = copy.prepare('pragma integrity_check(1)').get() as {
    readonly integrity_check: string
  }
  if (found !== 'ok') throw new HoldfastError('HF_STORE_DAMAGED', `The copy ${target} is damaged: ${found}.`)
  checkJobs(copy)
}

/** SQLite copies damaged rows like any others, so each is read as the store reads it, page by page. */
function checkJobs(copy: Database): void {
  const engine = new Engine({
    db: new Db(copy, readSql().statements),
    clock: systemClock,
    random: systemRandom,
    processes: { own: null, isGone: () => false },
  })
  const { jobs, counted } = engine.db.get<{ jobs: number; counted: number }>('countedJobs') ?? {}
  if (jobs !== counted) throw damaged(`it has ${jobs} jobs, and ${counted} were counted`)
  let after: JobId | null = null
  do after = list(engine, { limit: PAGE, after }).next
  while (after !== null)
}

function emptied(source: string): HoldfastError {
  return new HoldfastError('HF_STORE_DAMAGED', `${source} is empty: there is nothing to copy.`, {
    hint: 'Restore an older backup; if the store was never used, there is none to make.',
  })
}

/** Some versions of Node warn that `node:sqlite` is new, which is nothing that a user of ours can change. */
export async function withoutSqliteWarning<T>(load: () => Promise<T>): Promise<T> {
  const emit = process.emitWarning.bind(process)
  process.emitWarning = (warning: string | Error, ...rest: unknown[]): void => {
    const isOurs = rest[0] === 'ExperimentalWarning' && String(warning).startsWith('SQLite is')
    if (!isOurs) Reflect.apply(emit, undefined, [warning, ...rest])
  }
  try {
    return await load()
  } finally {
    process.emitWarning = emit
  }
}

function withOpen(database: Database, work: (database: Database) => void): void {
  try {
    work(database)
  } finally {
    database.close()
  }
}
