/** Adds 5 ms to each fsync of a process, as a laptop's disk does: a library that is loaded before all others. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const SOURCE = fileURLToPath(new URL('slow-fsync.c', import.meta.url))

let compiled: Readonly<Record<string, string>> | string | undefined

/** What a process needs in its environment, or why there is no such thing here. */
export function slowDiskEnvironment(): Readonly<Record<string, string>> | string {
  compiled ??= compile()
  return compiled
}

function compile(): Readonly<Record<string, string>> | string {
  if (process.platform !== 'linux') return 'skipped: needs Linux'
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-slow-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const library = join(folder, 'slow-fsync.so')
  const { status } = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, SOURCE, '-ldl'], {
    stdio: ['ignore', 2, 2],
  })
  return status === 0 ? { LD_PRELOAD: library } : 'skipped: needs cc, a C compiler'
}
