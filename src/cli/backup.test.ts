import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { currentNode, currentNodeMissing } from '../../test/support/current-node.ts'
import { fakeIo } from '../../test/support/fake-io.ts'
import { root } from '../../test/support/tree.ts'
import { holdfast } from '../holdfast.ts'
import { withoutSqliteWarning } from '../stores/sqlite/backup.ts'
import { loadDriver } from '../stores/sqlite/driver.ts'
import { sqliteStore } from '../stores/sqlite/index.ts'
import { run } from './program.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-backup-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const open = (directory: string) => holdfast({ store: sqliteStore({ directory }), logger: false })

async function backup(...args: string[]): Promise<{ code: number; err: string }> {
  const io = fakeIo()
  const code = await run(['backup', ...args], io)
  return { code, err: io.err() }
}

describe('holdfast backup', () => {
  test('copies a store that is in use, for the owner alone, and the copy goes on where it was', async () => {
    const [directory, copy] = [join(folder, 'store'), join(folder, 'copy.db')]
    const hf = open(directory)
    const job = hf.job({ name: 'greet', run: () => 'hello' })
    const { id } = await job.enqueue(undefined, { in: '1h' })
    expect(await backup(copy, '--store', `file:${directory}`)).toMatchObject({ code: 0 })
    expect(statSync(copy).mode & 0o777).toBe(0o600)
    await job.enqueue()
    await hf.close()

    const restored = join(folder, 'restored')
    mkdirSync(restored, { mode: 0o700 })
    copyFileSync(copy, join(restored, 'holdfast.db'))
    const again = open(restored)
    const known = await again.job({ name: 'greet', run: () => 'hello' }).get(id)
    expect(await known?.state()).toBe('scheduled')
    expect((await again.queues()).map(({ counts }) => counts)).toMatchObject([{ scheduled: 1, ready: 0 }])
    await again.close()
  })

  test.each([
    ['a file that is there', 'there.db', 'store', 2, 'exists already'],
    ['a store that is not there', 'copy.db', 'nowhere', 5, 'There is no'],
  ])('refuses %s, and writes nothing', async (_, file, store, code, says) => {
    await using hf = open(join(folder, 'store'))
    await hf.queues()
    writeFileSync(join(folder, 'there.db'), 'precious')
    const refused = await backup(join(folder, file), '--store', `file:${join(folder, store)}`)
    expect(refused).toEqual({ code, err: expect.stringContaining(says) })
    expect(readdirSync(folder).sort()).toEqual(['store', 'there.db'])
    expect(statSync(join(folder, 'there.db')).size).toBe(8)
  })

  test('refuses a database that was emptied', async () => {
    const directory = join(folder, 'store')
    const hf = open(directory)
    await hf.queues()
    await hf.close()
    writeFileSync(join(directory, 'holdfast.db'), '')
    const refused = await backup(join(folder, 'copy.db'), '--store', `file:${directory}`)
    expect(refused).toEqual({ code: 5, err: expect.stringContaining('HF_STORE_DAMAGED') })
    expect(readdirSync(folder)).toEqual(['store'])
  })

  test.each([
    ['the body of a job', 'update holdfast_job set payload = \'"other"\''],
    ['the end of a job', "update holdfast_ended set reason = 'other'"],
    ['a job that is gone', 'delete from holdfast_job where seq = 1'],
    ['a job that is nowhere', 'delete from holdfast_ready'],
  ])('checks what it has copied: %s', async (_, damage) => {
    const directory = join(folder, 'store')
    const hf = open(directory)
    const job = hf.job({ name: 'greet', run: () => 'hello' })
    await (await job.enqueue()).cancel('not needed')
    await job.enqueue()
    await hf.close()
    const { DatabaseSync } = await loadDriver()
    const database = new DatabaseSync(join(directory, 'holdfast.db'))
    database.exec(damage)
    database.close()
    const refused = await backup(join(folder, 'copy.db'), '--store', `file:${directory}`)
    expect(refused).toEqual({ code: 5, err: expect.stringContaining('HF_STORE_DAMAGED') })
    expect(readdirSync(folder)).toEqual(['store'])
  })

  test('keeps the warning that node:sqlite is new to itself, and no other', async () => {
    const heard: string[] = []
    const spy = vi
      .spyOn(process, 'emitWarning')
      .mockImplementation((warning) => void heard.push(String(warning)))
    await withoutSqliteWarning(async () => {
      // As Node 22 and 24.0 do while they load it.
      process.emitWarning(
        'SQLite is an experimental feature and might change at any time',
        'ExperimentalWarning',
      )
      process.emitWarning('Something else is', 'ExperimentalWarning')
      process.emitWarning('SQLite is old', 'DeprecationWarning')
    })
    process.emitWarning('afterwards')
    spy.mockRestore()
    expect(heard).toEqual(['Something else is', 'SQLite is old', 'afterwards'])
  })

  test.skipIf(currentNode === undefined)(
    `prints nothing else on a current Node${currentNodeMissing}`,
    async () => {
      const directory = join(folder, 'store')
      const hf = open(directory)
      await hf.queues()
      await hf.close()
      const args = [
        `${root}src/cli/bin.ts`,
        'backup',
        join(folder, 'copy.db'),
        '--store',
        `file:${directory}`,
      ]
      const { stdout, stderr } = await promisify(execFile)(currentNode ?? '', args, { cwd: root, env: {} })
      expect(stdout).toBe('')
      expect(stderr).toMatch(/^Copied .*\n$/)
    },
  )

  test('refuses a store on a server', async () => {
    const refused = await backup(join(folder, 'copy.db'), '--store', 'postgres://localhost/app')
    expect(refused.err).toContain('Only an embedded store')
  })
})
