import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { fakeIo } from '../../test/support/fake-io.ts'
import { holdfast } from '../holdfast.ts'
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

  test('refuses a store on a server', async () => {
    const refused = await backup(join(folder, 'copy.db'), '--store', 'postgres://localhost/app')
    expect(refused.err).toContain('Only an embedded store')
  })
})
