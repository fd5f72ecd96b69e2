/**
 * The directory of a store: checked before anything is written to it, and private to the user who runs the process.
 *
 * Nothing here opens a database file that exists. When a process closes any descriptor of a file, it drops all its POSIX
 * locks on that file, those of SQLite included; `stat`, `access` and `chmod` are safe.
 */
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  statfsSync,
  statSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { HoldfastError } from '../../../errors.ts'
import { messageOf } from '../../../std/text.ts'
import { judgeFileSystem } from './file-system.ts'

export interface StoreFiles {
  readonly directory: string
  readonly database: string
  readonly bell: string
}

export const DATABASE = 'holdfast.db'
const BELL = 'bell'
const NAMES = [DATABASE, `${DATABASE}-wal`, `${DATABASE}-shm`, BELL]

/** Makes the directory and the files that are missing. `notice` gets what the user should know, a line each. */
export function prepareDirectory(directory: string, notice: (line: string) => void): StoreFiles {
  const path = resolve(directory)
  try {
    refuseUnfit(path)
    const existing = nearestExisting(path)
    // Asked here, because mkdir with `recursive` says ENOENT on a read-only file system.
    accessSync(existing, constants.W_OK | constants.X_OK)
    checkFileSystem(path, existing, notice)
    makeDirectory(path, notice)
    // SQLite gives -wal and -shm the mode of the database, so it must be private before SQLite opens it.
    createFile(join(path, DATABASE))
    createFile(join(path, BELL))
    for (const name of NAMES) makePrivate(join(path, name), notice)
  } catch (error) {
    throw asStoreError(path, error)
  }
  return { directory: path, database: join(path, DATABASE), bell: join(path, BELL) }
}

// ── before anything is written ───────────────────────────────────────────────────────────────────────────────────

function refuseUnfit(path: string): void {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat === undefined) return
  if (stat.isSymbolicLink())
    throw new HoldfastError('HF_BAD_STORE', `${path} is a symbolic link.`, {
      hint: 'Name the directory that it points to.',
    })
  if (!stat.isDirectory())
    throw new HoldfastError('HF_BAD_STORE', `${path} is not a directory.`, {
      hint: 'Name a directory; it is made if it is missing.',
    })
  accessSync(path, constants.R_OK | constants.X_OK)
  if (holdsPglite(path))
    throw new HoldfastError(
      'HF_BAD_STORE',
      `${path} holds a PGlite database, which earlier versions of Holdfast made.`,
      { hint: "Move it away or name another directory; the jobs in it can't be imported." },
    )
  for (const name of NAMES) refuseUnfitFile(join(path, name))
  refuseEmptied(path)
}

function holdsPglite(path: string): boolean {
  const has = (name: string): boolean => existsSync(join(path, name))
  return has('PG_VERSION') || (has('base') && has('global'))
}

/** A link would give one database two names, each with its own log; opening a pipe would block forever. */
function refuseUnfitFile(path: string): void {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat === undefined) return
  if (!stat.isFile())
    throw new HoldfastError(
      'HF_BAD_STORE',
      `${path} is ${stat.isSymbolicLink() ? 'a symbolic link' : 'not a plain file'}, and the store needs that name.`,
      { hint: 'Move it away or name another directory.' },
    )
  accessSync(path, constants.R_OK | constants.W_OK)
}

/** An empty file is a new database to SQLite. The bell is rung when the tables are there, so it is asked first. */
function refuseEmptied(path: string): void {
  const sizeOf = (name: string): number => statSync(join(path, name), { throwIfNoEntry: false })?.size ?? 0
  if (sizeOf(BELL) === 0 || sizeOf(DATABASE) > 0) return
  throw new HoldfastError(
    'HF_STORE_DAMAGED',
    `${join(path, DATABASE)} is empty or gone, and it was not before.`,
    {
      hint: 'Restore a backup, or delete the directory to start with an empty store.',
    },
  )
}

function checkFileSystem(path: string, existing: string, notice: (line: string) => void): void {
  const type = fileSystemOf(existing)
  const verdict = type === null ? null : judgeFileSystem(type)
  if (verdict === null) return
  if ('warn' in verdict) return notice(`${path} is on ${verdict.warn}`)
  throw new HoldfastError(
    'HF_BAD_STORE',
    `${path} is on a file system that other machines share (${verdict.refuse}).`,
    {
      hint: 'Use a directory on a local disk, or PostgreSQL or Redis if several hosts must share the store.',
    },
  )
}

/** Read as a bigint: a type above 2^31 may be sign-extended to 64 bits, of which a number loses the low ones. */
function fileSystemOf(path: string): number | null {
  try {
    return Number(BigInt.asUintN(32, statfsSync(path, { bigint: true }).type))
  } catch {
    // Some sandboxes do not answer; that says nothing about the disk.
    return null
  }
}

/** A directory that is not there yet will be on the file system of its parent. */
function nearestExisting(path: string): string {
  let at = path
  while (dirname(at) !== at && statSync(at, { throwIfNoEntry: false }) === undefined) at = dirname(at)
  return at
}

// ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────

/** A directory that we did not make keeps its mode: it may be shared on purpose. */
function makeDirectory(path: string, notice: (line: string) => void): void {
  const isNew = mkdirSync(path, { recursive: true, mode: 0o700 }) !== undefined
  const mode = statSync(path).mode & 0o777
  if (isNew || isWindows() || (mode & 0o066) === 0) return
  notice(`${path} is open to other users of this machine (mode ${octal(mode)}); chmod 700 closes it.`)
}

/** The one moment when `fs` may open a database: it is empty, and SQLite cannot have locked it yet. */
function createFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
  }
}

function makePrivate(path: string, notice: (line: string) => void): void {
  const mode = (lstatSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o777
  if (isWindows() || (mode & 0o077) === 0) return
  try {
    chmodSync(path, 0o600)
  } catch (error) {
    const code = codeOf(error)
    // SQLite removes -wal and -shm when the last process closes the database.
    if (code === 'ENOENT') return
    // The file belongs to another user, or the file system keeps no modes: it works, so report it and continue.
    notice(
      `${path} is open to other users of this machine (mode ${octal(mode)}), and chmod failed (${code}).`,
    )
  }
}

function octal(mode: number): string {
  return mode.toString(8).padStart(3, '0')
}

/** Modes mean nothing there. */
function isWindows(): boolean {
  return process.platform === 'win32'
}

// ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────────

function asStoreError(path: string, error: unknown): HoldfastError {
  if (error instanceof HoldfastError) return error
  const text = messageOf(error)
  switch (codeOf(error)) {
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new HoldfastError(
        'HF_STORE_DENIED',
        `This process may not use the directory ${path}: ${text}.`,
        {
          hint: 'Give the user that runs this process the right to make, read and write it, or name another directory.',
          cause: error,
        },
      )
    case 'ENOSPC':
    case 'EDQUOT':
      return new HoldfastError('HF_STORE_FULL', `The disk of ${path} is full: ${text}.`, {
        hint: 'Make room on the disk, or name a directory on another one.',
        cause: error,
      })
    default:
      return new HoldfastError('HF_BAD_STORE', `The directory ${path} cannot be used: ${text}.`, {
        hint: 'Name a directory on a local disk; it is made if it is missing.',
        cause: error,
      })
  }
}

function codeOf(error: unknown): string {
  const code = (error as { readonly code?: unknown } | null)?.code
  return typeof code === 'string' ? code : 'unknown'
}
