/** What an error of SQLite means for us, by its result code (https://sqlite.org/rescode.html). */
import { HoldfastError, type ErrorCode } from '../../errors.ts'

const BUSY = 5
const LOCKED = 6

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

/** The primary result code; undefined if the error is not SQLite's. */
function resultCode(error: unknown): number | undefined {
  const { errcode, code, message } = (error ?? {}) as Readonly<
    Record<'errcode' | 'code' | 'message', unknown>
  >
  if (typeof errcode === 'number') return errcode & 0xff
  if (code === 'ERR_SQLITE_ERROR') return TEXTS.get(message) ?? 1
  // better-sqlite3 and libsql: SQLITE_BUSY, SQLITE_IOERR_WRITE.
  const [, name] = (typeof code === 'string' && /^SQLITE_([A-Z]+)/.exec(code)) || []
  const at = name === undefined ? -1 : NAMES.indexOf(name)
  return at === -1 ? undefined : at + 1
}

/** Another connection writes. Nothing has happened, and the next try may succeed. */
export function isBusy(error: unknown): boolean {
  const code = resultCode(error)
  return code === BUSY || code === LOCKED
}

/** As callers see it; an error of our own stays what it is. */
export function storeError(error: unknown, lockHolder: () => string | null): unknown {
  const code = resultCode(error)
  if (code === undefined || error instanceof HoldfastError) return error
  const text = error instanceof Error ? error.message : String(error)
  if (isBusy(error)) {
    const holder = lockHolder() ?? 'another process'
    return new HoldfastError('HF_STORE_UNREACHABLE', `The database is locked by ${holder}.`, {
      hint: 'If that process is stopped or hangs, continue it or end it; otherwise the disk or the machine is overloaded.',
      cause: error,
    })
  }
  const meaning = CODES[code] ?? 'HF_STORE_UNREACHABLE'
  return new HoldfastError(meaning, `SQLite answered: ${text} (result code ${code}).`, { cause: error })
}
