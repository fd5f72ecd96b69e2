import { describe, expect, test } from 'vitest'
import { isIoError, storeError } from './sqlite-errors.ts'

const nobody = (): null => null
/** As `node:sqlite` throws it, and as better-sqlite3 and libsql do. */
const byNumber = (errcode: number): Error => Object.assign(new Error('said SQLite'), { errcode })
const byName = (code: string): Error => Object.assign(new Error('said SQLite'), { code })

describe('an error of SQLite', () => {
  test.each([
    ['SQLITE_NOMEM', 7, 'HF_STORE_FULL', 'more memory'],
    ['SQLITE_IOERR_NOMEM', 3_082, 'HF_STORE_FULL', 'more memory'],
    ['SQLITE_READONLY', 8, 'HF_STORE_DENIED', 'can be written'],
    ['SQLITE_READONLY_DBMOVED', 1_032, 'HF_STORE_MISSING', ''],
    ['SQLITE_IOERR', 10, 'HF_STORE_UNREACHABLE', 'Check the disk'],
    ['SQLITE_IOERR_FSYNC', 1_034, 'HF_STORE_UNREACHABLE', 'Check the disk'],
    ['SQLITE_CORRUPT', 11, 'HF_STORE_DAMAGED', ''],
    ['SQLITE_FULL', 13, 'HF_STORE_FULL', 'Make room on the disk'],
    ['SQLITE_CANTOPEN', 14, 'HF_STORE_DENIED', 'file descriptors'],
  ])('has a code and a hint of what to do: %s', (name, errcode, code, hint) => {
    const expected = { code, hint: expect.stringContaining(hint) as string }
    expect(storeError(byNumber(errcode), nobody)).toMatchObject(expected)
    expect(storeError(byName(name), nobody)).toMatchObject(expected)
  })

  test('keeps its extended code in the message', () => {
    expect(storeError(byNumber(1_034), nobody)).toMatchObject({
      message: 'SQLite answered: said SQLite (result code 1034).',
    })
  })

  test.each([byNumber(4_874), byName('SQLITE_IOERR_SHMSIZE')])(
    'of the disk means that it is full if it is',
    (error) => {
      expect(storeError(error, nobody, () => true)).toMatchObject({ code: 'HF_STORE_FULL' })
      expect(storeError(error, nobody, () => false)).toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
    },
  )

  test.each([
    [10, true],
    [1_034, true],
    [5, false],
    [13, false],
  ])('is one of the disk, or is not: %d', (errcode, is) => {
    expect(isIoError(byNumber(errcode))).toBe(is)
  })
})
