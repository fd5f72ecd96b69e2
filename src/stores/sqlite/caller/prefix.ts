/** What the names of our tables begin with in somebody else's database. */
import { refused } from '../../../job/options.ts'

/** Not empty: `queue` and `schedule` are names that the caller may want. */
const FORM = /^[A-Za-z_][A-Za-z0-9_]{0,29}$/
/** Names that SQLite keeps for itself. */
const RESERVED = /^sqlite_/i

export function readPrefix(prefix: unknown, path: string): string {
  // Names of tables know no case in SQLite, but sqlite_sequence, which holds the last token, does.
  if (typeof prefix === 'string' && FORM.test(prefix) && !RESERVED.test(prefix)) return prefix.toLowerCase()
  const hint = "Use letters, digits and underscores, not a digit first, 30 characters at most; not 'sqlite_'."
  throw refused(path, prefix, "the beginning of a table's name", hint)
}
