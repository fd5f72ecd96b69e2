import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { findWriter, lockHolder, shortCommand, type FileId } from './lock-holder.ts'
import { readProcessStat } from './process-stat.ts'

/** /proc/locks writes the device 254:0 as fe:00. */
const file: FileId = { dev: 0xfe00n, ino: 2170898n }
const held = '1: POSIX  ADVISORY  WRITE 10955 fe:00:2170898 120 120\n'

describe('the writer in /proc/locks', () => {
  test('is the process with a write lock on byte 120 of the file', () => {
    const locks = `${held}2: POSIX  ADVISORY  READ 10956 fe:00:2170898 123 123
3: POSIX  ADVISORY  READ 10956 fe:00:2170898 128 128
4: POSIX  ADVISORY  READ 10956 fe:00:2170896 1073741826 1073742335
5: FLOCK  ADVISORY  WRITE 10957 fe:00:2170898 0 EOF
`
    expect(findWriter(locks, file)).toBe(10955)
  })

  test.each(['119 121', '120 127', '0 EOF', '120 EOF'])('is found by a lock on bytes %s', (bytes) => {
    expect(findWriter(held.replace('120 120', bytes), file)).toBe(10955)
  })

  test.each([
    ['reads', held.replace('WRITE', 'READ ')],
    ['locks other bytes', held.replace('120 120', '121 127')],
    ['locks the bytes before', held.replace('120 120', '0 119')],
    ['locks another file', held.replace('2170898', '2170899')],
    ['waits for the lock', held.replace('1: ', '1: -> ')],
  ])('is nobody who only %s', (_name, locks) => {
    expect(findWriter(locks, file)).toBeNull()
  })

  test.each(['', 'garbage\n', '1: POSIX  ADVISORY  WRITE 7 <none>:0 120 120\n'])(
    'is nobody in %j',
    (locks) => {
      expect(findWriter(locks, file)).toBeNull()
    },
  )

  test('is told apart from one on another device', () => {
    const other = '2: POSIX  ADVISORY  WRITE 20 08:01:2170898 120 120\n'
    expect(findWriter(other + held, file)).toBe(10955)
  })

  test('is found on devices with large numbers', () => {
    // Minor 0x12345 and major 0x103, as glibc packs them.
    const dev = (0x12300n << 12n) | (0x103n << 8n) | 0x45n
    const wide = '2: POSIX  ADVISORY  WRITE 20 103:12345:2170898 120 120\n'
    expect(findWriter(held + wide, { ...file, dev })).toBe(20)
  })

  test('is found by the inode alone, if no other lock has it', () => {
    const overlay = { ...file, dev: 0x2fn }
    expect(findWriter(held, overlay)).toBe(10955)
    expect(findWriter(held + held.replace('fe:00', '00:20'), overlay)).toBeNull()
  })

  test('may have no pid', () => {
    expect(findWriter('1: OFDLCK ADVISORY  WRITE -1 fe:00:2170898 120 120\n', file)).toBe(-1)
  })
})

describe('a command line', () => {
  test('is shown on one line, and cut', () => {
    expect(shortCommand('node\0/srv/app/worker.js\0')).toBe('node /srv/app/worker.js')
    expect(shortCommand('node\0-e\0\n  one()\n\u001B[2J  two()\n')).toBe('node -e one() [2J two()')
    expect(shortCommand(`node\0${'x'.repeat(200)}`)).toMatch(/^node x{74}…$/)
  })

  test('does not show the passwords of its URLs', () => {
    expect(shortCommand('app\0--db=postgres://me:secret@db/app')).toBe('app --db=postgres://…@db/app')
  })
})

describe.runIf(process.platform === 'linux')('the holder of the write lock', () => {
  let folder: string
  let path: string
  let child: ChildProcessWithoutNullStreams | undefined

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'holdfast-holder-'))
    path = join(folder, 'holdfast.db')
  })

  afterEach(async () => {
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
    child = undefined
    rmSync(folder, { recursive: true, force: true })
  })

  /** Holds the lock, and releases it when it reads a line. */
  async function hold(): Promise<ChildProcessWithoutNullStreams> {
    const library = createRequire(import.meta.url).resolve('@photostructure/sqlite')
    const script = `/* writer */
      const { DatabaseSync } = require(${JSON.stringify(library)})
      globalThis.database = new DatabaseSync(${JSON.stringify(path)})
      database.exec('pragma journal_mode = wal; begin immediate')
      process.stdin.on('data', () => {
        database.exec('commit')
        console.log('let go')
      })
      console.log('ready')`
    child = spawn(process.execPath, ['-e', script])
    await once(child.stdout, 'data')
    return child
  }

  test('is named with its command line', async () => {
    const { pid } = await hold()
    expect(lockHolder(path)).toMatch(
      new RegExp(`^process ${pid} \\(.*node -e /\\* writer \\*/ const .*…\\)$`),
    )
  })

  test('is said to be stopped if it is', async () => {
    const { pid } = await hold()
    process.kill(pid!, 'SIGSTOP')
    for (let state = ''; state !== 'T';) {
      const stat = readProcessStat(pid!)
      state = typeof stat === 'object' ? stat.state : 'T'
    }
    expect(lockHolder(path)).toMatch(new RegExp(`^process ${pid} \\(.*, stopped\\)$`))
  })

  test('is nobody after the commit', async () => {
    const { stdin, stdout } = await hold()
    stdin.write('\n')
    await once(stdout, 'data')
    expect(lockHolder(path)).toBeNull()
  })

  test('is nobody if there is no database', () => {
    expect(lockHolder(path)).toBeNull()
  })
})
