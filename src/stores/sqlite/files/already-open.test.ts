import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { linkSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { refuseIfOpen } from './already-open.ts'

let folder: string
let path: string
let database: DatabaseSyncInstance

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-open-'))
  path = join(folder, 'holdfast.db')
  database = new DatabaseSync(path)
  database.exec('pragma journal_mode = wal; create table t (a)')
})

afterEach(() => {
  if (database.isOpen) database.close()
  rmSync(folder, { recursive: true, force: true })
})

describe.runIf(process.platform === 'linux')('a database that this process has open', () => {
  const locked = expect.objectContaining({
    code: 'HF_STORE_LOCKED',
    message: expect.stringContaining('open'),
  })

  test('is refused', () => {
    expect(() => refuseIfOpen(path)).toThrowError(locked)
  })

  test.each([
    ['a symbolic link', symlinkSync],
    ['a hard link', linkSync],
  ])('is refused under another name: %s', (_name, link) => {
    link(path, join(folder, 'other.db'))
    expect(() => refuseIfOpen(join(folder, 'other.db'))).toThrowError(locked)
  })

  test('keeps its lock when it is looked at', () => {
    database.exec('begin immediate')
    expect(() => refuseIfOpen(path)).toThrowError(locked)
    database.exec('insert into t values (1); commit')
  })
})

describe('a database that may be opened', () => {
  test('was closed', () => {
    database.close()
    expect(() => refuseIfOpen(path)).not.toThrow()
  })

  test('is not there', () => {
    expect(() => refuseIfOpen(join(folder, 'none.db'))).not.toThrow()
  })

  test('is open in another process only', async () => {
    database.close()
    const library = createRequire(import.meta.url).resolve('@photostructure/sqlite')
    const script = `
      const { DatabaseSync } = require(${JSON.stringify(library)})
      globalThis.database = new DatabaseSync(${JSON.stringify(path)})
      database.exec('begin immediate')
      process.stdin.resume()
      console.log('ready')`
    const child = spawn(process.execPath, ['-e', script], { stdio: ['pipe', 'pipe', 'inherit'] })
    await once(child.stdout, 'data')
    expect(() => refuseIfOpen(path)).not.toThrow()
    child.stdin.end()
    await once(child, 'exit')
  })
})
