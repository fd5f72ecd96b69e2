/**
 * Which directories the stores of this process have open. One SQLite library may open a file as often as it likes; two of
 * them lose data (see `files/already-open.ts`). So a file that is open in this process is refused unless a store of ours
 * opened it, in this copy of Holdfast or in another one: a hot reload leaves the old one open for a while.
 */
import { realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

const KEY = Symbol.for('holdfast.sqlite.open')
const open = ((globalThis as { [KEY]?: Map<string, number> })[KEY] ??= new Map())

/** Notes a directory, which need not exist yet. Returns whether a store of this process has it open, and how to leave. */
export function enterDirectory(directory: string): { readonly isOpen: boolean; readonly leave: () => void } {
  const path = realPath(resolve(directory))
  const before = open.get(path) ?? 0
  open.set(path, before + 1)
  let left = false
  const leave = (): void => {
    if (left) return
    left = true
    const now = (open.get(path) ?? 1) - 1
    if (now === 0) open.delete(path)
    else open.set(path, now)
  }
  return { isOpen: before > 0, leave }
}

/** Of a directory that does not exist yet, as far up as it does. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    const parent = dirname(path)
    return parent === path ? path : join(realPath(parent), basename(path))
  }
}
