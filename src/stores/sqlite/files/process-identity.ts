/**
 * Names a process so that others can tell that it is gone, and its jobs need not wait until their leases expire.
 * A wrong "gone" takes jobs from a process that runs them, so every doubt means that it is still there.
 */
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { readProcessStat } from './process-stat.ts'

/** Where pids have a meaning. */
export interface Place {
  /** The pid namespace on Linux; elsewhere the host. A pid of another scope says nothing here. */
  readonly scope: string
  /** The boot id on Linux; elsewhere empty, because nothing tells one boot from another. */
  readonly boot: string
}

/** When the process that has a pid now was started; null if the system does not tell. */
export type Sighting = { readonly startTime: number | null } | 'gone' | 'unknown'

interface Identity extends Place {
  readonly pid: number
  readonly startTime: number | null
}

let place: Place | null | undefined

/** This process as a text for `isProcessGone`; null if it cannot be named. */
export function ownProcess(): string | null {
  const here = ownPlace()
  const seen = look(process.pid)
  if (here === null || seen === 'gone' || seen === 'unknown') return null
  return JSON.stringify([here.scope, here.boot, process.pid, seen.startTime])
}

/** Whether the process is provably gone. False if it is there, if it cannot be seen from here, and for a malformed text. */
export function isProcessGone(identity: string): boolean {
  return judge(identity, ownPlace(), look)
}

/**
 * The scope is compared first: LXC and systemd-nspawn give each container a boot id of its own, so another boot id means
 * that the machine was restarted only within one scope. Outside containers that is always the same one.
 */
export function judge(identity: string, here: Place | null, lookAt: (pid: number) => Sighting): boolean {
  const process = parse(identity)
  if (process === null || here === null || process.scope !== here.scope) return false
  if (process.boot !== here.boot) return true
  const seen = lookAt(process.pid)
  if (seen === 'gone' || seen === 'unknown') return seen === 'gone'
  if (seen.startTime === null || process.startTime === null) return false
  return seen.startTime !== process.startTime
}

function parse(identity: string): Identity | null {
  let parts: unknown
  try {
    parts = JSON.parse(identity)
  } catch {
    return null
  }
  if (!Array.isArray(parts) || parts.length !== 4) return null
  const [scope, boot, pid, startTime] = parts as readonly unknown[]
  if (typeof scope !== 'string' || typeof boot !== 'string') return null
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid < 1) return null
  if (startTime !== null && typeof startTime !== 'number') return null
  return { scope, boot, pid, startTime }
}

/** Read once: a process keeps its namespace and its boot. */
function ownPlace(): Place | null {
  if (place === undefined) place = process.platform === 'linux' ? placeOnLinux() : placeElsewhere()
  return place
}

function placeOnLinux(): Place | null {
  try {
    // A /proc of another namespace counts pids differently: `unshare --pid` without `--mount-proc` leaves one behind.
    if (readlinkSync('/proc/self') !== String(process.pid)) return null
    return {
      scope: `linux ${readlinkSync('/proc/self/ns/pid')}`,
      boot: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
    }
  } catch {
    return null
  }
}

function placeElsewhere(): Place {
  return { scope: `${process.platform} ${hostname()}`, boot: '' }
}

function look(pid: number): Sighting {
  return process.platform === 'linux' ? lookOnLinux(pid) : lookElsewhere(pid)
}

function lookOnLinux(pid: number): Sighting {
  const stat = readProcessStat(pid)
  if (stat === 'unreadable') return 'unknown'
  // With `hidepid`, /proc hides the processes of other users, but a signal still finds them.
  if (stat === 'missing') return lookElsewhere(pid) === 'gone' ? 'gone' : 'unknown'
  const isDead = stat.state === 'Z' || stat.state === 'X'
  return isDead ? 'gone' : { startTime: stat.startTime }
}

function lookElsewhere(pid: number): Sighting {
  try {
    process.kill(pid, 0)
    return { startTime: null }
  } catch (error) {
    const { code } = error as { readonly code?: unknown }
    // EPERM: it exists, but belongs to another user.
    return code === 'ESRCH' ? 'gone' : 'unknown'
  }
}
