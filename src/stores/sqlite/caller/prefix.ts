/** Prefix of our tables in the caller's database. */
import { HoldfastError } from '../../../errors.ts'
import { PREFIX } from '../engine/db.ts'

/** Not empty: `queue` and `schedule` are names that the caller may want. */
const FORM = /^[A-Za-z_][A-Za-z0-9_]{0,29}$/
/** Names that SQLite keeps for itself. */
const RESERVED = /^sqlite_/i

export function readPrefix(prefix: string = PREFIX): string {
  // Names of tables know no case in SQLite, but sqlite_sequence, which holds the last token, does.
  if (typeof prefix === 'string' && FORM.test(prefix) && !RESERVED.test(prefix)) return prefix.toLowerCase()
  throw new HoldfastError(
    'HF_BAD_OPTION',
    `The prefix ${JSON.stringify(prefix)} cannot be the beginning of a table's name.`,
    { hint: "Use letters, digits and underscores, not a digit first, 30 characters at most; not 'sqlite_'." },
  )
}
