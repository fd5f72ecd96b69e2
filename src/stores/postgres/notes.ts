/** Notes in SQL. Those whose time is over are not listed any more; the upkeep deletes them. */
import type { Note, Notes } from '../store.ts'
import type { Executor } from './executor.ts'
import type { Statements } from './statements.ts'

export function sqlNotes(executor: Executor, statements: Statements): Notes {
  return {
    async put(kind, id, text, ttlMs) {
      await executor.query(statements.putNote, [kind, id, text, ttlMs === null ? null : Math.round(ttlMs)])
    },
    async remove(kind, id) {
      return (await executor.query(statements.removeNote, [kind, id])).length > 0
    },
    list: (kind) => executor.query<Note>(statements.notes, [kind]),
  }
}
