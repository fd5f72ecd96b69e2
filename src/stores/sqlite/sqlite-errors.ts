/** What an error of SQLite means for us, by its result code (https://sqlite.org/rescode.html). */
import { HoldfastError, type ErrorCode } from '../../errors.ts'
import { messageOf } from '../../std/text.ts'

const BUSY = 5
const LOCKED = 6
const IOERR = 10

/** The primary result codes from 1 on, by name. */
const NAMES =
  'ERROR INTERNAL PERM ABORT BUSY LOCKED NOMEM READONLY INTERRUPT IOERR CORRUPT NOTFOUND FULL CANTOPEN PROTOCOL EMPTY SCHEMA TOOBIG CONSTRAINT MISMATCH MISUSE NOLFS AUTH FORMAT RANGE NOTADB'.split(
    ' ',
  )

const CODES: Readonly<Record<number, ErrorCode>> = {
  // PERM, READONLY, CANTOPEN, AUTH
  3: 'HF_STORE_DENIED',
  8: 'HF_STORE_DENIED',
  14: 'HF_STORE_DENIED',
  23: 'HF_STORE_DENIED',
  // NOMEM, FULL
  7: 'HF_STORE_FULL',
  13: 'HF_STORE_FULL',
  // CORRUPT, NOTADB
  11: 'HF_STORE_DAMAGED',
  26: 'HF_STORE_DAMAGED',
  // CONSTRAINT: an id that exists already, above all.
  19: 'HF_STORE_CONTRACT',
  // TOOBIG, MISMATCH, RANGE
  18: 'HF_STORE_REFUSED',
  20: 'HF_STORE_REFUSED',
  25: 'HF_STORE_REFUSED',
}

/** SQLite's own words: `@photostructure/sqlite` throws some errors of a read without a result code. */
const TEXTS: ReadonlyMap<unknown, number> = new Map([
  ['database is locked', 5],
  ['database table is locked', 6],
  ['out of memory', 7],
  ['attempt to write a readonly database', 8],
  ['disk I/O error', 10],
  ['database disk image is malformed', 11],
  ['database or disk is full', 13],
  ['unable to open database file', 14],
  ['file is not a database', 26],
])

/** Extended codes that mean something else than their primary code does. */
const IOERR_NOMEM = 0x0c0a
const READONLY_DBMOVED = 0x0408

/** The names that better-sqlite3 and libsql give to those. */
const EXTENDED: Readonly<Record<string, number>> = {
  SQLITE_IOERR_NOMEM: IOERR_NOMEM,
  SQLITE_READONLY_DBMOVED: READONLY_DBMOVED,
}

/** What people can do. The hints of the codes themselves speak of a server. */
const HINTS: Readonly<Record<number, string>> = {
  7: 'Give the process or the machine more memory, then try again.',
  8: 'Check that the files and their file system can be written. Linux remounts a file system read-only when its disk fails: see the log of the kernel.',
  10: 'Check the disk, and the log of the kernel for its errors. The call may have been carried out anyway.',
  13: 'Make room on the disk or in the quota, or keep finished jobs for a shorter time (`keep`), then try again.',
  14: 'Check that the directory is there, that this process may read and write the files in it, and that it has file descriptors left (ulimit -n).',
}

/** The result code with its extension if the library tells it; undefined if the error is not SQLite's. */
function fullCode(error: unknown): number | undefined {
  const { errcode, code, message } = (error ?? {}) as Readonly<
    Record<'errcode' | 'code' | 'message', unknown>
  >
  if (typeof errcode === 'number') return errcode
  if (code === 'ERR_SQLITE_ERROR') return TEXTS.get(message) ?? 1
  // better-sqlite3 and libsql: SQLITE_BUSY, SQLITE_IOERR_WRITE.
  if (typeof code === 'string' && code in EXTENDED) return EXTENDED[code]
  const [, name] = (typeof code === 'string' && /^SQLITE_([A-Z]+)/.exec(code)) || []
  const at = name === undefined ? -1 : NAMES.indexOf(name)
  return at === -1 ? undefined : at + 1
}

function resultCode(error: unknown): number | undefined {
  const code = fullCode(error)
  return code === undefined ? undefined : code & 0xff
}

/** The disk failed: whether the transaction is on it nobody knows, nor what state the connection is in. */
export function isIoError(error: unknown): boolean {
  return resultCode(error) === IOERR
}

/** Somebody else writes. Nothing has happened, and the next try may well get through. */
export function isBusy(error: unknown): boolean {
  const code = resultCode(error)
  return code === BUSY || code === LOCKED
}

/**
 * As callers see it; an error of our own stays what it is. `isDiskFull` is asked about I/O errors: SQLite reports a sync or
 * a shared memory file that finds no room as one, and so does a write beyond a quota.
 */
export function storeError(
  error: unknown,
  lockHolder: () => string | null,
  isDiskFull: () => boolean = () => false,
): unknown {
  const code = fullCode(error)
  if (code === undefined || error instanceof HoldfastError) return error
  const text = messageOf(error)
  if (isBusy(error)) {
    const holder = lockHolder() ?? 'another process'
    return new HoldfastError('HF_STORE_UNREACHABLE', `The database is locked by ${holder}.`, {
      hint: 'If that process is stopped or hangs, continue it or end it; otherwise the disk or the machine is overloaded.',
      cause: error,
    })
  }
  if (code === READONLY_DBMOVED)
    return new HoldfastError('HF_STORE_MISSING', `The database was deleted or replaced: ${text}.`, {
      cause: error,
    })
  const meant = meaningOf(code, isDiskFull)
  const message = `SQLite answered: ${text} (result code ${code}).`
  const hint = HINTS[meant]
  return new HoldfastError(CODES[meant] ?? 'HF_STORE_UNREACHABLE', message, {
    ...(hint === undefined ? {} : { hint }),
    cause: error,
  })
}

/** As a primary code. */
function meaningOf(code: number, isDiskFull: () => boolean): number {
  if (code === IOERR_NOMEM) return 7
  const primary = code & 0xff
  return primary === IOERR && isDiskFull() ? 13 : primary
}
