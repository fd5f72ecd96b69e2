/** What a directory of the embedded store may be called. Apart from `directory.ts`, because a URL is checked before the store is loaded. */
import { HoldfastError } from '../../../errors.ts'
import { refused } from '../../../job/options.ts'

/** Refuses names that mean something else to SQLite or to `path` than a directory of this store. */
export function readDirectoryName(directory: unknown, path: string): string {
  if (typeof directory !== 'string' || directory === '')
    throw refused(path, directory, "the path of a directory for Holdfast alone, such as '.holdfast'")
  if (directory.startsWith(':memory:'))
    throw new HoldfastError('HF_BAD_STORE', 'The embedded store keeps its jobs in files, not in memory.', {
      hint: "For a store in memory, use 'memory:'; for a directory of this name, './:memory:'.",
    })
  return directory
}
