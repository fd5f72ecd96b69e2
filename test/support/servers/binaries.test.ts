import { chmod, lstat, mkdir, mkdtemp, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { usableBinaries } from './binaries.ts'
import { isOpenToAll } from './folder.ts'

/** Ourselves, as an account that we hand over to. */
const account = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }

let root: string
let native: string
let folder: string

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'holdfast-binaries-'))
  await chmod(root, 0o755)
  native = join(root, 'package', 'native')
  folder = join(root, 'server')
  await Promise.all(['bin', 'lib'].map((name) => mkdir(join(native, name), { recursive: true })))
  await mkdir(folder)
  for (const name of ['initdb', 'postgres']) {
    await writeFile(join(native, 'bin', name), '')
    await chmod(join(native, 'bin', name), 0o755)
  }
  await writeFile(join(native, 'lib', 'libpq.so.5.18'), 'the library')
  const links = [{ source: 'native/lib/libpq.so.5.18', target: 'native/lib/libpq.so.5' }]
  await writeFile(join(native, 'pg-symlinks.json'), JSON.stringify(links))
})

afterEach(() => rm(root, { recursive: true }))

const link = (base: string): string => join(base, 'lib', 'libpq.so.5')

describe('the binaries of an npm package', () => {
  test('are used where they lie, with the links that an install script would have made', async () => {
    const binaries = await usableBinaries(native, folder, undefined)
    expect(binaries).toEqual({
      initdb: join(native, 'bin', 'initdb'),
      postgres: join(native, 'bin', 'postgres'),
    })
    expect(await readlink(link(native))).toBe('libpq.so.5.18')
  })

  test('are used where they lie if the links are there', async () => {
    await symlink('libpq.so.5.18', link(native))
    const { postgres } = await usableBinaries(native, folder, account)
    expect(postgres).toBe(join(native, 'bin', 'postgres'))
  })

  test('are copied if the account cannot come to them', async () => {
    await chmod(join(root, 'package'), 0o700)
    const { postgres } = await usableBinaries(native, folder, account)
    expect(postgres).toBe(join(folder, 'native', 'bin', 'postgres'))
    expect((await lstat(link(join(folder, 'native')))).isSymbolicLink()).toBe(true)
    expect(await readlink(link(join(folder, 'native')))).toBe('libpq.so.5.18')
  })

  test('are copied if they cannot be executed', async () => {
    await chmod(join(native, 'bin', 'initdb'), 0o644)
    const { initdb } = await usableBinaries(native, folder, undefined)
    expect(initdb).toBe(join(folder, 'native', 'bin', 'initdb'))
    expect((await stat(initdb)).mode & 0o777).toBe(0o755)
  })
})

describe('whether a path is open to all', () => {
  test('depends on every folder above it', async () => {
    const binary = join(native, 'bin', 'postgres')
    expect(isOpenToAll(binary)).toBe(true)
    await chmod(native, 0o700)
    expect(isOpenToAll(binary)).toBe(false)
  })
})
