/** Notes in SQL. Expired notes are not listed; the upkeep deletes them. */
import type { Note, Notes } from '../store.ts'
import { checkNote } from '../write-check.ts'
import type { Executor } from './executor.ts'
import type { Statements } from './statements.ts'
import { listNotesIn } from './tx/transactions.ts'

export function sqlNotes(executor: Executor, statements: Statements): Notes {
  return {
    async put(kind, id, text, ttlMs) {
      checkNote(kind, id, text, ttlMs)
      if (text === null) return (await executor.query(statements.removeNote, [kind, id])).length > 0
      await executor.query(statements.putNote, [kind, id, text, ttlMs === null ? null : Math.round(ttlMs)])
      return true
    },
    list: (kind, tx) =>
      tx === undefined ? executor.query<Note>(statements.notes, [kind]) : listNotesIn(tx, statements, kind),
  }
}
