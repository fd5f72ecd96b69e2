import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sqliteStore } from '../index.ts'
import { loadDriver } from '../driver.ts'
import { findDamage, refuseDamagedLog } from './log-check.ts'

const HEADER = 32
const FRAME = 24 + 4_096
const SALTS = 16

const folder = mkdtempSync(join(tmpdir(), 'holdfast-log-'))
const source = join(folder, 'source.db')
/** Six transactions of a few frames each. */
let log: Buffer
/** The same log begun anew: two new transactions over what is left of the old ones. */
let again: Buffer
/** Where transactions end. */
let ends: number[]

beforeAll(async () => {
  const { DatabaseSync } = await loadDriver()
  const database = new DatabaseSync(source)
  database.exec('pragma journal_mode = wal; pragma wal_autocheckpoint = 0; create table t (a)')
  const insert = database.prepare('insert into t values (?)')
  for (let nth = 0; nth < 5; nth++) insert.run('x'.repeat(10_000))
  log = readFileSync(`${source}-wal`)
  const isCommit = (at: number): boolean => log.readUInt32BE(at + 4) > 0
  ends = offsets(log)
    .filter(isCommit)
    .map((at) => at + FRAME)
  database.exec('pragma wal_checkpoint(restart)')
  for (let nth = 0; nth < 2; nth++) insert.run('y')
  again = readFileSync(`${source}-wal`)
  database.close()
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

function offsets(bytes: Buffer): number[] {
  return Array.from({ length: (bytes.length - HEADER) / FRAME }, (_, nth) => HEADER + nth * FRAME)
}

/** What is found in a log of those bytes. */
function found(bytes: Buffer): number | null {
  const database = join(folder, 'some.db')
  writeFileSync(`${database}-wal`, bytes)
  return findDamage(`${database}-wal`)
}

function flipped(bytes: Buffer, ...places: number[]): Buffer {
  const copy = Buffer.from(bytes)
  for (const at of places) copy[at] = (copy[at] ?? 0) ^ 4
  return copy
}

describe('the check of the log', () => {
  test('finds nothing in a whole log, an empty one, one that is not there, and one that began anew', () => {
    expect(ends.length).toBe(6)
    expect(found(log)).toBeNull()
    expect(found(Buffer.alloc(0))).toBeNull()
    expect(findDamage(join(folder, 'nowhere-wal'))).toBeNull()
    expect(again.length).toBe(log.length)
    expect(found(again)).toBeNull()
  })

  test('takes what was torn at the end for what it is: the last transaction was never acknowledged', () => {
    const last = ends.at(-2) ?? 0
    for (let at = last; at < log.length; at += 397) {
      // A torn write does not make a commit frame of another one.
      const isSize = [4, 5, 6, 7].includes((at - HEADER) % FRAME)
      if (!isSize) expect(found(flipped(log, at)), `at ${at}`).toBeNull()
    }
    for (let size = 0; size < log.length; size += 4_999) expect(found(log.subarray(0, size))).toBeNull()
  })

  test('finds a bit that was flipped before the last two transactions, whatever it belongs to', () => {
    const safe = ends.at(-3) ?? 0
    for (let at = HEADER; at < safe; at += 499)
      expect(found(flipped(log, at)), `at ${at}`).toBe(Math.floor((at - HEADER) / FRAME) + 1)
    for (let at = 0; at < HEADER; at++) expect(found(flipped(log, at)), `at ${at}`).toBe(0)
  })

  test('finds it in the header of every frame, salts and checksums included', () => {
    const frames = offsets(log).filter((at) => at < (ends[2] ?? 0))
    for (const [nth, at] of frames.entries())
      for (let byte = 0; byte < 24; byte++) expect(found(flipped(log, at + byte))).toBe(nth + 1)
  })

  test('is not misled by a torn transaction over what an older log has left behind', () => {
    const [first = 0] = offsets(again).filter(
      (at) => again.subarray(SALTS, SALTS + 8).compare(again, at + 8, at + 16) === 0,
    )
    expect(found(flipped(again, first + 2_000, first + FRAME + 2_000))).toBeNull()
  })

  test('says what to do', () => {
    const database = join(folder, 'some.db')
    found(flipped(log, HEADER + 100))
    expect(() => refuseDamagedLog(database)).toThrow(
      expect.objectContaining({
        code: 'HF_STORE_DAMAGED',
        message: expect.stringContaining('damaged at frame 1,'),
        hint: expect.stringContaining("durability 'normal'"),
      }),
    )
  })
})

describe('a store whose log is damaged', () => {
  test.each([
    ['full', 'HF_STORE_DAMAGED'],
    ['normal', null],
  ] as const)('with durability %s: %s', async (durability, code) => {
    const directory = join(folder, durability)
    const whole = sqliteStore({ directory, durability })
    await whole.open()
    for (let nth = 0; nth < 6; nth++) await whole.notes.put('worker', `note ${nth}`, 'x'.repeat(5_000), null)
    const copy = join(folder, `${durability} killed`)
    const before = sqliteStore({ directory: copy, durability })
    await before.open()
    await before.close()
    const file = 'holdfast.db'
    const bytes = readFileSync(join(directory, `${file}-wal`))
    copyFileSync(join(directory, file), join(copy, file))
    writeFileSync(join(copy, `${file}-wal`), flipped(bytes, bytes.length - 7 * FRAME))
    await whole.close()
    const store = sqliteStore({ directory: copy, durability })
    const opened = await store.open().then(
      () => null,
      (error: unknown) => (error as { readonly code: unknown }).code,
    )
    await store.close()
    expect(opened).toBe(code)
  })
})
