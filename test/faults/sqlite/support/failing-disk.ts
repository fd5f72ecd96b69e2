/** A disk that fails while the test wants it to, for one process: a library that is loaded before all others. */
import { spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const SOURCE = fileURLToPath(new URL('failing-disk.c', import.meta.url))

/** By their numbers on Linux. */
const ERRORS = { EIO: 5, ENOSPC: 28, EDQUOT: 122 } as const

export class FailingDisk {
  /** For the process whose disk it is. */
  readonly env: Readonly<Record<string, string>>
  readonly #fault: string

  private constructor(library: string, fault: string) {
    this.env = { LD_PRELOAD: library, FAULT_FILE: fault }
    this.#fault = fault
  }

  /** Null, after a line that says why, if there is no C compiler or this is not Linux. */
  static compile(folder: string): FailingDisk | null {
    const library = join(folder, 'failing-disk.so')
    const args = ['-shared', '-fPIC', '-O1', '-o', library, SOURCE, '-ldl']
    const compiled = process.platform === 'linux' ? spawnSync('cc', args, { encoding: 'utf8' }) : null
    if (compiled?.status === 0) return new FailingDisk(library, join(folder, 'fault'))
    console.warn(`No disk that fails, so its tests are skipped: ${compiled?.stderr ?? 'this is not Linux'}`)
    return null
  }

  fails(error: keyof typeof ERRORS, ...calls: readonly ('fsync' | 'pwrite' | 'pread')[]): void {
    writeFileSync(this.#fault, `${ERRORS[error]} ${calls.join(' ')}`)
  }

  works(): void {
    rmSync(this.#fault, { force: true })
  }
}
