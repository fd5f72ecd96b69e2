/** A copy of an embedded store, made while processes use it. */
import { closeSync, existsSync, openSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { HoldfastError } from '../../errors.ts'
import { loadDriver, type Database } from './driver.ts'
import { DATABASE } from './files/directory.ts'
import { checkOwner } from './open-database.ts'
import { storeError } from './sqlite-errors.ts'

/** Longer than any transaction of ours takes. */
const BUSY_MS = 10_000

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
  const { DatabaseSync } = await loadDriver()
  reserve(target)
  try {
    withOpen(new DatabaseSync(source), (database) => {
      database.exec(`pragma busy_timeout = ${BUSY_MS}`)
      checkOwner(database, source)
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
}

function withOpen(database: Database, work: (database: Database) => void): void {
  try {
    work(database)
  } finally {
    database.close()
  }
}
