import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../std/clock.ts'
import { lockDirectory } from './lock-file.ts'

let directory: string
const children: ChildProcess[] = []
const lockPath = (): string => join(directory, 'holdfast.lock')
const lock = (): ReturnType<typeof lockDirectory> => lockDirectory(directory, systemClock)

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'holdfast-lock-'))
})

afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  rmSync(directory, { recursive: true, force: true })
})

/** A process that takes the lock, says so, and does `then`. */
async function otherProcess(then: string): Promise<{ child: ChildProcess; said: string }> {
  const script = `
    const { lockDirectory } = await import(${JSON.stringify(new URL('lock-file.ts', import.meta.url).href)})
    const { systemClock } = await import(${JSON.stringify(new URL('../../../std/clock.ts', import.meta.url).href)})
    try {
      const lock = lockDirectory(${JSON.stringify(directory)}, systemClock)
      console.log('locked')
      ${then}
    } catch (error) {
      console.log(error.code)
    }`
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  const [chunk] = (await once(child.stdout, 'data')) as [Buffer]
  return { child, said: chunk.toString().trim() }
}

const stay = 'setInterval(() => undefined, 1000)'

describe('a lock on a directory', () => {
  test('is a file that names its holder, and goes with it', () => {
    const held = lock()
    expect(JSON.parse(readFileSync(lockPath(), 'utf8'))).toMatchObject({ pid: process.pid, host: hostname() })
    held.release()
    held.release()
    expect(existsSync(lockPath())).toBe(false)
    lock().release()
  })

  test('is refused a second time in the same process', () => {
    const held = lock()
    expect(lock).toThrowError(
      expect.objectContaining({
        code: 'HF_STORE_LOCKED',
        message: expect.stringContaining('in use by this process already'),
        hint: expect.stringContaining('Close the store that has it open'),
      }),
    )
    held.release()
  })

  test('is refused while another process has it, which is named', async () => {
    const { child } = await otherProcess(stay)
    expect(lock).toThrowError(
      expect.objectContaining({
        code: 'HF_STORE_LOCKED',
        message: expect.stringContaining(`in use by process ${child.pid}, since`),
        hint: expect.stringMatching(/^Stop process \d+, use another directory, or use PostgreSQL/),
      }),
    )
  })

  test('keeps another process out', async () => {
    const held = lock()
    expect((await otherProcess(stay)).said).toBe('HF_STORE_LOCKED')
    held.release()
    expect((await otherProcess(stay)).said).toBe('locked')
  })

  test('is taken over from a process that was killed', async () => {
    const { child } = await otherProcess(stay)
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(existsSync(lockPath())).toBe(true)
    const held = lock()
    expect(JSON.parse(readFileSync(lockPath(), 'utf8'))).toMatchObject({ pid: process.pid })
    held.release()
  })

  test('is let go by a process that exits', async () => {
    const { child } = await otherProcess('process.exit(0)')
    if (child.exitCode === null) await once(child, 'exit')
    expect(existsSync(lockPath())).toBe(false)
  })

  test('is taken over by one only, however many find it left behind', async () => {
    const { child } = await otherProcess(stay)
    child.kill('SIGKILL')
    await once(child, 'exit')
    const said = await Promise.all(Array.from({ length: 4 }, () => otherProcess(stay)))
    expect(said.map((each) => each.said).toSorted()).toEqual([
      'HF_STORE_LOCKED',
      'HF_STORE_LOCKED',
      'HF_STORE_LOCKED',
      'locked',
    ])
  })

  test.runIf(process.platform === 'linux')('is not held by another process with the same pid', () => {
    const left = { pid: process.pid, host: hostname(), since: 'long ago', began: '1' }
    writeFileSync(lockPath(), JSON.stringify(left))
    lock().release()
  })

  test('of another machine stands, and the error says what to delete', () => {
    const holder = { pid: 1, host: 'elsewhere', since: '2030-01-01T00:00:00.000Z', began: null }
    writeFileSync(lockPath(), JSON.stringify(holder))
    expect(lock).toThrowError(
      expect.objectContaining({
        code: 'HF_STORE_LOCKED',
        message: expect.stringContaining('process 1 on elsewhere'),
        hint: expect.stringContaining(`delete ${lockPath()}`),
      }),
    )
  })

  test.each(['', 'not JSON', '{}'])('that reads %j is being written, or was left half written', (text) => {
    writeFileSync(lockPath(), text)
    expect(lock).toThrowError(expect.objectContaining({ code: 'HF_STORE_LOCKED' }))
    const longAgo = systemClock.now() / 1000 - 60
    utimesSync(lockPath(), longAgo, longAgo)
    lock().release()
  })

  test('is not stopped for ever by who died at taking it over', () => {
    const dead = { pid: 2 ** 30, host: hostname(), since: 'long ago', began: null }
    writeFileSync(lockPath(), JSON.stringify(dead))
    const guard = join(directory, 'holdfast.lock.guard')
    writeFileSync(guard, JSON.stringify(dead))
    expect(lock).toThrowError(expect.objectContaining({ code: 'HF_STORE_LOCKED' }))
    const longAgo = systemClock.now() / 1000 - 60
    utimesSync(guard, longAgo, longAgo)
    lock().release()
    expect(existsSync(guard)).toBe(false)
  })
})
