/** The directory of an embedded database: made, held, and never one that holds something else. */
import { existsSync, mkdirSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { HoldfastError } from '../../../errors.ts'
import type { Clock } from '../../../std/clock.ts'
import { LOCK_NAME, lockDirectory } from './lock-file.ts'

/** There while the database is being created; what a crash left of that is nobody's data. */
const UNFINISHED = 'holdfast.unfinished'

export interface DataDirectory {
  readonly path: string
  /** Whether there is no database in it yet. */
  readonly isNew: boolean
  /** The database is created. */
  finished(): void
  release(): void
}

export function holdDirectory(directory: string, clock: Clock): DataDirectory {
  const path = create(directory)
  const lock = lockDirectory(path, clock)
  try {
    const isNew = prepare(path)
    return {
      path,
      isNew,
      finished: () => rmSync(join(path, UNFINISHED), { force: true }),
      release: () => lock.release(),
    }
  } catch (error) {
    lock.release()
    throw error
  }
}

function create(directory: string): string {
  try {
    mkdirSync(directory, { recursive: true })
    // One name for one directory, however it is spelt.
    return realpathSync(resolve(directory))
  } catch (cause) {
    throw new HoldfastError('HF_BAD_STORE', `The directory ${directory} cannot be created.`, {
      hint: 'Name a directory that this process may create and write.',
      cause,
    })
  }
}

function prepare(path: string): boolean {
  const marker = join(path, UNFINISHED)
  if (existsSync(marker)) empty(path)
  const entries = readdirSync(path).filter((name) => name !== LOCK_NAME && name !== UNFINISHED)
  if (entries.includes('PG_VERSION')) return false
  if (entries.length > 0) {
    throw new HoldfastError(
      'HF_BAD_STORE',
      `The directory ${path} is not empty, and what is in it is no embedded database.`,
      { hint: 'Name a directory of its own for the store; it is created if it is not there.' },
    )
  }
  writeFileSync(marker, '')
  return true
}

function empty(path: string): void {
  for (const name of readdirSync(path)) {
    if (name !== LOCK_NAME && name !== UNFINISHED) rmSync(join(path, name), { recursive: true, force: true })
  }
}
