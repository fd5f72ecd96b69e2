import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { prepareDirectory } from './directory.ts'

let folder: string
let directory: string

const hasModes = process.platform !== 'win32'
const isRoot = process.getuid?.() === 0
const mode = (path: string): number => statSync(path).mode & 0o777

/** Only the notices about modes. The file system of the temporary folder may cause others. */
function prepare(path = directory): string[] {
  const lines: string[] = []
  prepareDirectory(path, (line) => lines.push(line))
  return lines.filter((line) => line.includes('other users'))
}

function refusal(code: string, message: string, hint = ''): Error {
  return expect.objectContaining({
    name: 'HoldfastError',
    code,
    message: expect.stringContaining(message),
    hint: expect.stringContaining(hint),
  })
}

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'holdfast-directory-')))
  directory = join(folder, 'deep', 'store')
})

afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

describe('a new directory', () => {
  test('is made with its parents, and with an empty database and a bell in it', () => {
    const files = prepareDirectory(directory, () => undefined)
    expect(files).toEqual({
      directory,
      database: join(directory, 'holdfast.db'),
      bell: join(directory, 'bell'),
    })
    expect(readdirSync(directory).toSorted()).toEqual(['bell', 'holdfast.db'])
    expect(statSync(files.database).size).toBe(0)
  })

  test('is returned as an absolute path', () => {
    const files = prepareDirectory(`${relative(process.cwd(), directory)}/`, () => undefined)
    expect(files.directory).toBe(directory)
  })

  test.runIf(hasModes)('belongs to its user alone, and so does all that SQLite adds', () => {
    expect(prepare()).toEqual([])
    const database = new DatabaseSync(join(directory, 'holdfast.db'))
    database.exec('pragma journal_mode = wal; create table t (a)')
    const modes = readdirSync(directory).map((name) => [name, mode(join(directory, name))])
    database.close()
    expect(mode(directory)).toBe(0o700)
    expect(Object.fromEntries(modes)).toEqual({
      bell: 0o600,
      'holdfast.db': 0o600,
      'holdfast.db-shm': 0o600,
      'holdfast.db-wal': 0o600,
    })
  })
})

describe('a directory that is there', () => {
  beforeEach(() => mkdirSync(directory, { recursive: true, mode: 0o700 }))

  test('keeps the database that is in it', () => {
    prepare()
    const path = join(directory, 'holdfast.db')
    const database = new DatabaseSync(path)
    database.exec('create table t (a); insert into t values (7)')
    database.close()
    prepare()
    const again = new DatabaseSync(path)
    expect(again.prepare('select a from t').get()).toEqual({ a: 7 })
    again.close()
  })

  test('may have other files in it', () => {
    writeFileSync(join(directory, '.gitignore'), '*')
    prepare()
    expect(existsSync(join(directory, '.gitignore'))).toBe(true)
  })

  test.runIf(hasModes)('keeps its mode, and the user is told if others can read it', () => {
    chmodSync(directory, 0o750)
    expect(prepare()).toEqual([
      `${directory} is open to other users of this machine (mode 750); chmod 700 closes it.`,
    ])
    expect(mode(directory)).toBe(0o750)
  })

  test.runIf(hasModes).each([0o700, 0o711])('is worth no notice with mode %o', (bits) => {
    chmodSync(directory, bits)
    expect(prepare()).toEqual([])
  })

  test.runIf(hasModes).each(['holdfast.db', 'holdfast.db-wal', 'holdfast.db-shm', 'bell'])(
    'has %s closed to others',
    (name) => {
      writeFileSync(join(directory, name), '')
      chmodSync(join(directory, name), 0o664)
      prepare()
      expect(mode(join(directory, name))).toBe(0o600)
    },
  )
})

describe('a directory that cannot be the store', () => {
  test('is a file', () => {
    mkdirSync(join(folder, 'deep'))
    writeFileSync(directory, '')
    expect(() => prepare()).toThrowError(refusal('HF_BAD_STORE', `${directory} is not a directory`))
  })

  test('is below a file', () => {
    writeFileSync(join(folder, 'deep'), '')
    expect(() => prepare()).toThrowError(refusal('HF_BAD_STORE', 'ENOTDIR'))
  })

  test('is a name that no system takes', () => {
    expect(() => prepare(`${directory}\0`)).toThrowError(refusal('HF_BAD_STORE', directory))
  })

  test.each(['a directory', 'nothing'])('is a symbolic link to %s', (target) => {
    if (target === 'a directory') mkdirSync(join(folder, 'target'))
    mkdirSync(join(folder, 'deep'))
    symlinkSync(join(folder, 'target'), directory)
    expect(() => prepare()).toThrowError(refusal('HF_BAD_STORE', `${directory} is a symbolic link`))
    expect(existsSync(join(folder, 'target', 'holdfast.db'))).toBe(false)
  })

  test.each(['holdfast.db', 'holdfast.db-wal', 'holdfast.db-shm', 'bell'])(
    'has a symbolic link in the place of %s',
    (name) => {
      mkdirSync(directory, { recursive: true })
      symlinkSync(join(folder, 'elsewhere'), join(directory, name))
      expect(() => prepare()).toThrowError(
        refusal('HF_BAD_STORE', `${join(directory, name)} is a symbolic link`),
      )
      expect(readdirSync(directory)).toEqual([name])
      expect(existsSync(join(folder, 'elsewhere'))).toBe(false)
    },
  )

  test('has a folder in the place of the database', () => {
    mkdirSync(join(directory, 'holdfast.db'), { recursive: true })
    expect(() => prepare()).toThrowError(refusal('HF_BAD_STORE', 'is not a plain file'))
  })

  test.each([[['PG_VERSION']], [['base', 'global']]])('holds a PGlite database: %s', (names) => {
    mkdirSync(directory, { recursive: true })
    for (const name of names) mkdirSync(join(directory, name))
    expect(() => prepare()).toThrowError(
      refusal('HF_BAD_STORE', `${directory} holds a PGlite database`, 'Move it away'),
    )
    expect(readdirSync(directory).toSorted()).toEqual(names)
  })

  // Not even root can create or open anything there.
  test.runIf(process.platform === 'linux').each(['/sys/holdfast', '/sys'])(
    'is one that this process may not write: %s',
    (path) => {
      expect(() => prepare(path)).toThrowError(refusal('HF_STORE_DENIED', `the directory ${path}:`))
    },
  )

  test.runIf(hasModes && !isRoot).each([0o300, 0o500, 0o600])('has mode %o', (bits) => {
    mkdirSync(directory, { recursive: true })
    chmodSync(directory, bits)
    expect(() => prepare()).toThrowError(refusal('HF_STORE_DENIED', 'EACCES'))
    chmodSync(directory, 0o700)
  })

  test.runIf(hasModes && !isRoot)('has a database that this process may not write', () => {
    prepare()
    chmodSync(join(directory, 'holdfast.db'), 0o400)
    expect(() => prepare()).toThrowError(refusal('HF_STORE_DENIED', 'EACCES'))
  })
})
