/** Whether a path still names the file that it named before. Asks without opening it, which would drop SQLite's locks. */
import { statSync, type BigIntStats } from 'node:fs'

export function isSameFile(path: string, before: Pick<BigIntStats, 'dev' | 'ino'>): boolean {
  try {
    const { dev, ino } = statSync(path, { bigint: true })
    return dev === before.dev && ino === before.ino
  } catch (error) {
    // A disk that fails says nothing about the file.
    return (error as { readonly code?: unknown }).code !== 'ENOENT'
  }
}
