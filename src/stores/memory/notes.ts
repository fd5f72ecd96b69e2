/** Notes in memory. */
import type { Notes } from '../store.ts'
import { checkNote } from '../write-check.ts'
import type { MemoryState } from './state.ts'
import type { Guard } from './upkeep.ts'

interface StoredNote {
  readonly text: string
  readonly untilMs: number
}

export function memoryNotes(state: MemoryState, step: Guard): Notes {
  const kinds = new Map<string, Map<string, StoredNote>>()

  /** The notes of a kind that have not expired. */
  const notesOf = (kind: string): Map<string, StoredNote> => {
    const notes = kinds.get(kind) ?? new Map<string, StoredNote>()
    kinds.set(kind, notes)
    const now = state.now()
    for (const [id, { untilMs }] of notes) if (untilMs <= now) notes.delete(id)
    return notes
  }

  return {
    put: (kind, id, text, ttlMs) =>
      step(() => {
        checkNote(kind, id, text, ttlMs)
        if (text === null) return notesOf(kind).delete(id)
        const untilMs = ttlMs === null ? Infinity : state.now() + ttlMs
        notesOf(kind).set(id, { text, untilMs })
        return true
      }),
    list: (kind) =>
      step(() =>
        [...notesOf(kind)].map(([id, { text }]) => ({ id, text })).sort((a, b) => (a.id < b.id ? -1 : 1)),
      ),
  }
}
