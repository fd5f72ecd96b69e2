/** Where redis-server is; npm has none. As root on Debian, as in most containers of a CI, it is installed if missing. */
import { execFile } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

const DEADLINE_MS = 120_000
const POLICY = '/usr/sbin/policy-rc.d'

export function findRedis(): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/bin']
  return folders.map((folder) => join(folder, 'redis-server')).find(isExecutable)
}

/** One line for whoever wonders. */
export function redisSkippedSince(reason: string): string {
  return `The suites on Redis are skipped: ${reason}.`
}

/** Empty if it is there in the end, else why it is not. Called once a run: package managers do not share their lock. */
export async function installRedis(): Promise<string> {
  if (findRedis() !== undefined) return ''
  const missing = 'no redis-server on the PATH'
  if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) return missing
  // Debian starts what it installs, unless this file says no; ours is a process of the test.
  const isOurs = await writeFile(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755, flag: 'wx' }).then(
    () => true,
    () => false,
  )
  try {
    await aptInstall('redis-server')
    return findRedis() === undefined ? missing : ''
  } catch (error) {
    const { stderr } = error as { stderr?: string }
    const line = (stderr || String(error)).trim().split('\n').at(-1)
    return `${missing}, and apt-get could not install it: ${line}`
  } finally {
    if (isOurs) await rm(POLICY, { force: true })
  }
}

async function aptInstall(name: string): Promise<void> {
  const signal = AbortSignal.timeout(DEADLINE_MS)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const apt = (...args: string[]): Promise<unknown> =>
    run('apt-get', ['-q', '-y', '-o', 'Acquire::Retries=0', ...args], { env, signal })
  const install = ['install', '--no-install-recommends', name]
  // The download comes first, since the deadline should not end dpkg half-way.
  const download = (): Promise<unknown> => apt(...install, '--download-only')
  await download().catch(() => apt('update').then(download))
  await apt(...install)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
