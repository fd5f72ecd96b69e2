/**
 * Notices a log (`-wal`) that was deleted: it holds acknowledged jobs, and processes that have it open write on into a file
 * without a name, while the next one to open the database would make another beside it.
 */
import { existsSync, statSync, type BigIntStats } from 'node:fs'
import { HoldfastError } from '../../../errors.ts'
import { isSameFile } from './same-file.ts'

/** Another process may make both between the two looks. */
const LOOKS = 3
const PAUSE_MS = 10

/** To be called before the database is opened. */
export function refuseMissingLog(database: string): void {
  for (let look = 1; isLogMissing(database); look++) {
    if (look === LOOKS) throw missingLog(database)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS)
  }
}

/** SQLite makes the log before `-shm`, and deletes it after `-shm` when the last process closes the database. */
function isLogMissing(database: string): boolean {
  return statOf(`${database}-wal`) === undefined && statOf(`${database}-shm`) !== undefined
}

export type LogFile = 'same' | 'other' | 'gone'

/** Returns what tells whether the log of a database that is open is still the file that it is now. */
export function watchLog(database: string): () => LogFile {
  const path = `${database}-wal`
  const opened = statOf(path)
  return () => {
    if (opened === undefined || isSameFile(path, opened)) return 'same'
    return existsSync(path) ? 'other' : 'gone'
  }
}

function statOf(path: string): BigIntStats | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false })
}

function missingLog(database: string): HoldfastError {
  return new HoldfastError(
    'HF_STORE_DAMAGED',
    `${database}-wal, which holds acknowledged jobs, was deleted: ${database}-shm is still there.`,
    {
      hint: `Stop every process that uses the store, and start them again: one that has the log open writes it into the database. If that does not help, there was none, and those jobs are lost: restore a backup, or delete ${database}-shm to go on without them.`,
    },
  )
}

/** For what a call wrote into such a log. */
export function deletedLog(database: string): HoldfastError {
  return new HoldfastError(
    'HF_STORE_DAMAGED',
    `${database}-wal was deleted or replaced while several processes used the database. The call may have been carried out anyway.`,
    {
      hint: 'Stop every process that uses the store, and start them again: what the log held is written into the database.',
    },
  )
}
