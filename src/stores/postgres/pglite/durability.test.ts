import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { letPromisesRun } from '../../../std/virtual-clock.ts'
import type { Executor, Statement } from '../executor.ts'
import { loadPglite } from './database.ts'
import type { PgliteModule } from './database.ts'
import { pgliteExecutor } from './pglite-executor.ts'

/** Far beyond what anything here takes: a loaded machine is no failure. */
const until = (fact: () => unknown): Promise<unknown> => vi.waitFor(fact, { timeout: 10_000, interval: 10 })

/** Starting PGlite compiles 10 MB of WebAssembly and creates a database. */
const START_MS = 120_000
vi.setConfig({ testTimeout: START_MS, hookTimeout: START_MS })

const sql = (name: string, text: string): Statement => ({ name, text })
const insert = sql('insert', 'insert into acked values ($1::int)')
const all = sql('all', 'select n from acked order by n')

let folder: string
/** A database with its table, copied for each test: creating one takes long. */
let template: string
let directory: string
const progress: string[] = []
const opened: Executor[] = []

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-pglite-'))
  template = join(folder, 'made', 'by', 'us')
  // As if its creation had been interrupted before, which leaves half a database.
  mkdirSync(join(template, 'base'), { recursive: true })
  writeFileSync(join(template, 'PG_VERSION'), 'half')
  writeFileSync(join(template, 'holdfast.unfinished'), '')
  const executor = pgliteExecutor({ directory: template, onProgress: (line) => progress.push(line) })
  await executor.open()
  await executor.script('create table acked (n int)')
  await executor.close()
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

let copies = 0

beforeEach(() => {
  directory = join(folder, `copy-${++copies}`)
})

afterEach(async () => {
  await Promise.all(opened.splice(0).map((executor) => executor.close()))
  rmSync(directory, { recursive: true, force: true })
})

function copyOnce(): void {
  if (!existsSync(directory)) cpSync(template, directory, { recursive: true })
}

/** The database of the template, in the test's own directory. */
function open(load?: () => Promise<PgliteModule>): Executor {
  copyOnce()
  const executor = pgliteExecutor(
    { directory, onProgress: (line) => progress.push(line) },
    load === undefined ? {} : { load },
  )
  opened.push(executor)
  return executor
}

const numbers = async (executor: Executor): Promise<number[]> =>
  (await executor.query<{ n: number }>(all, [])).map(({ n }) => n)

describe('an embedded database on disk', () => {
  test('is created once, even after a creation that was interrupted, and says that this takes a while', async () => {
    expect(progress).toEqual([expect.stringContaining(`Creating the embedded database in `)])
    await open().open()
    expect(progress).toHaveLength(1)
    expect(existsSync(join(directory, 'holdfast.unfinished'))).toBe(false)
  })

  test('has what was written when it is opened again, and leaves no lock', async () => {
    const first = open()
    await first.query(insert, [1])
    await first.transaction((tx) => tx.query(insert, [2]))
    await first.close()
    expect(readdirSync(directory).filter((name) => name.startsWith('holdfast'))).toEqual([])
    expect(await numbers(open())).toEqual([1, 2])
  })

  test('is refused to a second one, in this process and in another', async () => {
    const first = open()
    await first.open()
    await expect(open().open()).rejects.toMatchObject({ code: 'HF_STORE_LOCKED' })
    const other = writer(0)
    expect(await other.next()).toBe('HF_STORE_LOCKED')
    await other.kill()
    expect(await numbers(first)).toEqual([])
  })

  test('loses nothing that was acked when its process is killed', async () => {
    let acked = 0
    // Each continues where the last was killed, in the middle of its work.
    for (const enough of [200, 1_000]) {
      const child = writer(acked)
      while (acked < enough) acked = Number(await child.next())
      await child.kill()
      acked = Math.max(acked, ...child.rest().map(Number))
      const executor = open()
      const found = await numbers(executor)
      await executor.close()
      // One more may have been written whose answer we did not get; none is missing, none is there twice.
      expect(found.length).toBeGreaterThanOrEqual(acked)
      expect(found).toEqual(Array.from({ length: found.length }, (_, index) => index + 1))
      acked = found.length
    }
  })

  test('keeps its log short, for which nobody else is there', async () => {
    const executor = open()
    const fill = sql('fill', 'insert into acked values ($1::int)')
    const next = sql('next', 'select pg_switch_wal()::text')
    const segments = (): number =>
      readdirSync(join(directory, 'pg_wal')).filter((name) => /^[0-9A-F]{24}$/.test(name)).length
    // 16 MB each.
    for (let times = 0; times < 20; times++) {
      await executor.query(fill, [times])
      await executor.query(next, [])
    }
    await until(async () => {
      await executor.query(all, [])
      expect(segments()).toBeLessThanOrEqual(10)
    })
    expect(await numbers(executor)).toHaveLength(20)
  })

  test('is not made where other files are', async () => {
    mkdirSync(directory)
    writeFileSync(join(directory, 'package.json'), '{}')
    await expect(open().open()).rejects.toMatchObject({
      code: 'HF_BAD_STORE',
      message: expect.stringContaining('is not empty'),
    })
    expect(readdirSync(directory)).toEqual(['package.json'])
  })

  test('that cannot start says why, and lets the directory go', async () => {
    const executor = open()
    writeFileSync(join(directory, 'PG_VERSION'), '9\n')
    await expect(executor.open()).rejects.toMatchObject({
      code: 'HF_BAD_STORE',
      message: expect.stringContaining('does not start'),
    })
    expect(readdirSync(directory)).not.toContain('holdfast.lock')
  })

  test('that cannot be created says so', async () => {
    writeFileSync(directory, 'a file')
    await expect(pgliteExecutor({ directory: join(directory, 'below') }).open()).rejects.toMatchObject({
      code: 'HF_BAD_STORE',
      message: expect.stringContaining('cannot be created'),
    })
  })
})

describe('closing an embedded database', () => {
  test('ends a transaction under way after a moment, and then refuses everything', async () => {
    const executor = open()
    await executor.open()
    const hanging = executor.transaction(() => new Promise(() => undefined)).catch((error: unknown) => error)
    const waiting = executor.query(all, []).catch((error: unknown) => error)
    await letPromisesRun()
    await Promise.all([executor.close(), executor.close()])
    const closed = { code: 'HF_CLOSED' }
    expect(await hanging).toMatchObject(closed)
    expect(await waiting).toMatchObject(closed)
    await expect(executor.open()).rejects.toMatchObject(closed)
    await expect(executor.query(all, [])).rejects.toMatchObject(closed)
    await expect(executor.script('select 1')).rejects.toMatchObject(closed)
  })
})

describe('an embedded database that breaks', () => {
  /** PGlite, until it is told to break: then it gives no answer any more, as after running out of memory. */
  function fragile(): { load: () => Promise<PgliteModule>; breakIt: () => void; starts: () => number } {
    let broken: object | undefined
    let newest: object | undefined
    let starts = 0
    const load = async (): Promise<PgliteModule> => {
      const { PGlite } = await loadPglite()
      return {
        PGlite: {
          defaultStartParams: PGlite.defaultStartParams,
          async create(options) {
            const instance = await PGlite.create(options)
            newest = instance
            starts++
            return {
              close: () => instance.close(),
              execProtocolRawStream: (message, how) =>
                broken === instance ? Promise.resolve() : instance.execProtocolRawStream(message, how),
            }
          },
        },
      }
    }
    return { load, breakIt: () => (broken = newest), starts: () => starts }
  }

  test('is started again by the next call, has what was acked, and tells the gap', async () => {
    const { load, breakIt, starts } = fragile()
    const executor = open(load)
    const heard: string[] = []
    const gap = vi.fn()
    await executor.listen('a', (payload) => heard.push(payload), gap)
    await executor.query(insert, [1])
    breakIt()
    await expect(executor.query(insert, [2])).rejects.toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
    expect(await numbers(executor)).toEqual([1])
    expect(starts()).toBe(2)
    expect(gap).toHaveBeenCalledTimes(1)
    await executor.query(sql('notify', `select pg_notify('a', 'again')`), [])
    expect(heard).toEqual(['again'])
  })

  test('during a commit says that the outcome is not known', async () => {
    const { load, breakIt } = fragile()
    const executor = open(load)
    const result = executor.transaction(async (tx) => {
      await tx.query(insert, [1])
      breakIt()
    })
    await expect(result).rejects.toMatchObject({
      code: 'HF_STORE_UNREACHABLE',
      message: expect.stringContaining('is not known'),
    })
    expect(await numbers(executor)).toEqual([])
  })
})

interface Writer {
  /** The number of the next row that was acked. */
  next(): Promise<string>
  kill(): Promise<void>
  /** What it said before its end and was not read yet. */
  rest(): string[]
}

/** A process that inserts one row after the other, and says each when it is acked. */
function writer(from: number): Writer {
  copyOnce()
  const script = `
    const { pgliteExecutor } = await import(${JSON.stringify(new URL('pglite-executor.ts', import.meta.url).href)})
    const executor = pgliteExecutor({ directory: ${JSON.stringify(directory)} })
    try {
      await executor.open()
      for (let n = ${from} + 1; ; n++) {
        await executor.query({ name: 'insert', text: 'insert into acked values ($1::int)' }, [n])
        console.log(n)
      }
    } catch (error) {
      console.log(error.code)
    }`
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines: string[] = []
  let wake = (): void => undefined
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line)
    wake()
  })
  return {
    async next() {
      while (lines.length === 0) await new Promise<void>((resolve) => (wake = resolve))
      return lines.shift()!
    },
    async kill() {
      child.kill('SIGKILL')
      await once(child, 'close')
    },
    rest: () => lines.splice(0),
  }
}
