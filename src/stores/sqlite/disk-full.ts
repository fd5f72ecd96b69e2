/** Whether an I/O error means that there is no room, asked once it has happened. */
import { closeSync, fsyncSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'

/** More than SQLite asks for at once: its shared memory grows by 32 KB, its log by a page. */
const PROBE_BYTES = 64 * 2 ** 10
/** By number, because Node has no name for EDQUOT. */
const FULL: ReadonlySet<number> = new Set([constants.errno.ENOSPC, constants.errno.EDQUOT])

/** By the file system's own count. */
export function isDiskFull(database: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(dirname(database))
    return bavail * bsize < PROBE_BYTES
  } catch {
    return false
  }
}

/** By writing a file beside the database too: nothing else tells of a quota. Only for a directory of our own. */
export function isRoomGone(database: string): boolean {
  return isDiskFull(database) || isProbeRefused(join(dirname(database), `probe-${process.pid}`))
}

function isProbeRefused(path: string): boolean {
  try {
    const file = openSync(path, 'w', 0o600)
    try {
      writeSync(file, Buffer.alloc(PROBE_BYTES))
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    return false
  } catch (error) {
    return FULL.has(-((error as { readonly errno?: number }).errno ?? 0))
  } finally {
    rmSync(path, { force: true })
  }
}
