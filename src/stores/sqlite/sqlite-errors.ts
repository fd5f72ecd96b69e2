/** What an error of SQLite means for us, by its result code (https://sqlite.org/rescode.html). */
import { HoldfastError, type ErrorCode } from '../../errors.ts'

const BUSY = 5
const LOCKED = 6

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
  // TOOBIG, MISMATCH, RANGE
  18: 'HF_STORE_REFUSED',
  20: 'HF_STORE_REFUSED',
  25: 'HF_STORE_REFUSED',
}

/** The primary result code; undefined if the error is not SQLite's. */
function resultCode(error: unknown): number | undefined {
  const { errcode } = (error ?? {}) as { readonly errcode?: unknown }
  return typeof errcode === 'number' ? errcode & 0xff : undefined
}

/** Somebody else writes. Nothing has happened, and the next try may well get through. */
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
