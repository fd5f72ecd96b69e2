/** Names the process that holds SQLite's write lock, for the error of a call that could not get it. */
import { readFileSync, statSync } from 'node:fs'
import { cleanText } from '../../../std/text.ts'
import { readProcessStat } from './process-stat.ts'

/** Of the `-shm` file; see WAL_WRITE_LOCK in https://sqlite.org/walformat.html. */
const WRITE_LOCK_BYTE = 120
const COMMAND_CHARS = 80

/** `1: POSIX  ADVISORY  WRITE 12345 fd:01:131075 120 120`; a process that waits for a lock has `->` after the number. */
const WRITE_LOCK =
  /^\d+: (?:POSIX|OFDLCK) +\S+ +WRITE +(-?\d+) ([0-9a-f]+):([0-9a-f]+):(\d+) (\d+) (\d+|EOF)$/gm

export interface FileId {
  readonly dev: bigint
  readonly ino: bigint
}

/**
 * Such as `process 1234 (node /srv/app/worker.js, stopped)`. Null if it is free, or the system does not reveal the
 * holder.
 */
export function lockHolder(database: string): string | null {
  if (process.platform !== 'linux') return null
  try {
    const file = statSync(`${database}-shm`, { bigint: true })
    const pid = findWriter(readFileSync('/proc/locks', 'utf8'), file)
    return pid === null ? null : describeProcess(pid)
  } catch {
    return null
  }
}

/**
 * The pid in a text like /proc/locks; zero or less if the lock has an owner without a pid. Btrfs and overlayfs may show
 * another device than `stat` does; the inode alone is enough if only one such lock has it.
 */
export function findWriter(locks: string, file: FileId): number | null {
  const withInode = [...locks.matchAll(WRITE_LOCK)]
    .map(([, pid, major, minor, inode, start, end]) => ({
      pid: Number(pid),
      device: `${Number.parseInt(major ?? '', 16)}:${Number.parseInt(minor ?? '', 16)}`,
      inode: BigInt(inode ?? ''),
      // Locks of neighbouring bytes are shown as one.
      holds: Number(start) <= WRITE_LOCK_BYTE && (end === 'EOF' || Number(end) >= WRITE_LOCK_BYTE),
    }))
    .filter(({ inode, holds }) => inode === file.ino && holds)
  const device = deviceOf(file.dev)
  const exact = withInode.find((lock) => lock.device === device)
  return (exact ?? (withInode.length === 1 ? withInode[0] : undefined))?.pid ?? null
}

/** Major and minor as glibc packs them into `st_dev`. */
function deviceOf(dev: bigint): string {
  const major = (dev >> 8n) & 0xfffn
  const minor = (dev & 0xffn) | ((dev >> 12n) & 0xfff00n)
  return `${major}:${minor}`
}

function describeProcess(pid: number): string {
  if (pid <= 0) return 'a process that cannot be named'
  const stat = readProcessStat(pid)
  const isStopped = typeof stat === 'object' && (stat.state === 'T' || stat.state === 't')
  const name = typeof stat === 'object' ? stat.name : ''
  const about = [commandOf(pid) || name, isStopped ? 'stopped' : ''].filter((part) => part !== '')
  return about.length === 0 ? `process ${pid}` : `process ${pid} (${about.join(', ')})`
}

/** The command line on one line, without the passwords of its URLs: it ends in logs. Empty if it cannot be read. */
function commandOf(pid: number): string {
  try {
    return shortCommand(readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
  } catch {
    return ''
  }
}

export function shortCommand(cmdline: string): string {
  const line = cmdline
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
    .replace(/:\/\/[^/\s]*@/g, '://…@')
  return cleanText(line, COMMAND_CHARS)
}
