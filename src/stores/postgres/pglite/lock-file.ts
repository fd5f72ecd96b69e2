/**
 * An exclusive hold on a directory: PGlite does not notice a second process on its files, and both corrupt them. A file
 * with the holder's pid stands for the hold. One that a dead process left behind is taken over, under a guard, so that
 * of two who find it only one does.
 */
import { closeSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { HoldfastError } from '../../../errors.ts'
import type { Clock } from '../../../std/clock.ts'

export const LOCK_NAME = 'holdfast.lock'
const GUARD_NAME = 'holdfast.lock.guard'
/** Writing a lock, or taking one over, takes a moment: whoever takes longer died at it. */
const HALF_DONE_MS = 10_000

interface Holder {
  readonly pid: number
  readonly host: string
  /** For people. */
  readonly since: string
  /** When the process began, as its system tells: another with the same pid began at another time. */
  readonly began: string | null
}

export interface LockFile {
  /** Safe to call again. */
  release(): void
}

/** What this process holds, so that it lets go at its exit. */
const held = new Set<LockFile>()

export function lockDirectory(directory: string, clock: Clock): LockFile {
  const path = join(directory, LOCK_NAME)
  const mine: Holder = {
    pid: process.pid,
    host: hostname(),
    since: new Date(clock.now()).toISOString(),
    began: beginningOf(process.pid),
  }
  if (!create(path, mine)) takeOver(directory, path, mine, clock)
  const lock: LockFile = {
    release() {
      if (!held.delete(lock)) return
      if (held.size === 0) process.removeListener('exit', releaseAll)
      rmSync(path, { force: true })
    },
  }
  if (held.size === 0) process.on('exit', releaseAll)
  held.add(lock)
  return lock
}

function releaseAll(): void {
  for (const lock of held) lock.release()
}

/** False where there is one already. */
function create(path: string, holder: Holder): boolean {
  let file
  try {
    file = openSync(path, 'wx', 0o644)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
  writeSync(file, JSON.stringify(holder))
  closeSync(file)
  return true
}

/** Throws where its holder lives. */
function takeOver(directory: string, path: string, mine: Holder, clock: Clock): void {
  refuseIfHeld(directory, path, clock)
  const guard = join(directory, GUARD_NAME)
  if (ageMs(guard, clock) > HALF_DONE_MS) rmSync(guard, { force: true })
  // Somebody else is at it, and will hold it.
  if (!create(guard, mine)) throw lockedBy(directory, undefined)
  try {
    // It may have been taken over since we looked; behind the guard nobody else does.
    refuseIfHeld(directory, path, clock)
    rmSync(path, { force: true })
    if (!create(path, mine)) throw lockedBy(directory, undefined)
  } finally {
    rmSync(guard, { force: true })
  }
}

function refuseIfHeld(directory: string, path: string, clock: Clock): void {
  const holder = read(path)
  if (holder === 'none') return
  if (holder === 'unreadable') {
    if (ageMs(path, clock) > HALF_DONE_MS) return
    throw lockedBy(directory, undefined)
  }
  if (lives(holder)) throw lockedBy(directory, holder)
}

function read(path: string): Holder | 'none' | 'unreadable' {
  try {
    const holder = JSON.parse(readFileSync(path, 'utf8')) as Holder
    return typeof holder.pid === 'number' ? holder : 'unreadable'
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENOENT' ? 'none' : 'unreadable'
  }
}

function lives(holder: Holder): boolean {
  // Nothing is known of another machine's processes; it is for people to say that it is gone.
  if (holder.host !== hostname()) return true
  if (!exists(holder.pid)) return false
  const began = beginningOf(holder.pid)
  return began === null || holder.began === null || began === holder.began
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // Not ours to signal, but there.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/** In ticks since the machine started; null where the system does not tell. A container's first process is 1 each time. */
function beginningOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name, in brackets, may have anything in it; the beginning is the 20th field after it.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null
  } catch {
    return null
  }
}

function ageMs(path: string, clock: Clock): number {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat === undefined ? 0 : clock.now() - stat.mtimeMs
}

function lockedBy(directory: string, holder: Holder | undefined): HoldfastError {
  const elsewhere = 'use another directory, or use PostgreSQL, which several processes can share'
  if (holder === undefined) {
    return new HoldfastError(
      'HF_STORE_LOCKED',
      `The directory ${directory} is just being opened by another process.`,
    )
  }
  const { pid, host, since } = holder
  if (host !== hostname()) {
    return new HoldfastError(
      'HF_STORE_LOCKED',
      `The directory ${directory} is in use by process ${pid} on ${host}, since ${since}.`,
      {
        hint: `Stop that process, ${elsewhere}. If that machine or container is gone, delete ${join(directory, LOCK_NAME)}.`,
      },
    )
  }
  const who = pid === process.pid ? 'this process already' : `process ${pid}`
  const stop = pid === process.pid ? 'Close the store that has it open' : `Stop process ${pid}`
  return new HoldfastError(
    'HF_STORE_LOCKED',
    `The directory ${directory} is in use by ${who}, since ${since}.`,
    {
      hint: `${stop}, ${elsewhere}.`,
    },
  )
}
