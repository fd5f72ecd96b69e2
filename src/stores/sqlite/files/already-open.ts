/** Keeps one process from opening a database twice. */
import { readdirSync, statSync, type BigIntStats } from 'node:fs'
import { HoldfastError } from '../../../errors.ts'

const DESCRIPTORS = '/proc/self/fd'

/**
 * Throws if this process has the database open already. POSIX locks do not keep a process from itself: two SQLite
 * libraries, or two copies of one, both got the write lock, and 200 committed rows were gone. Only Linux can tell.
 */
export function refuseIfOpen(database: string): void {
  if (process.platform !== 'linux') return
  const file = statOf(database)
  if (file === null) return
  // By device and inode, because a file has more names than one. `stat` opens nothing, so it drops no locks.
  const isOpen = descriptors().some((name) => {
    const open = statOf(`${DESCRIPTORS}/${name}`)
    return open !== null && open.ino === file.ino && open.dev === file.dev
  })
  if (!isOpen) return
  throw new HoldfastError('HF_STORE_LOCKED', `This process already has ${database} open.`, {
    hint: 'Close whatever has it open, or use one store for both: two SQLite libraries in one process lose data.',
  })
}

function descriptors(): readonly string[] {
  try {
    return readdirSync(DESCRIPTORS)
  } catch {
    return []
  }
}

/** Null for a descriptor that was closed in the meantime, or a file that we may not see. */
function statOf(path: string): BigIntStats | null {
  try {
    return statSync(path, { bigint: true })
  } catch {
    return null
  }
}
