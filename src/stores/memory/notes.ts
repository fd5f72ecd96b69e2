/** Notes in memory. */
import type { Notes } from '../store.ts'
import type { MemoryState } from './state.ts'
import type { Guard } from './upkeep.ts'

interface StoredNote {
  readonly text: string
  readonly untilMs: number
}

export function memoryNotes(state: MemoryState, step: Guard): Notes {
  const kinds = new Map<string, Map<string, StoredNote>>()

  /** Those of a kind that are not gone by now. */
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
        const untilMs = ttlMs === null ? Infinity : state.now() + ttlMs
        notesOf(kind).set(id, { text, untilMs })
      }),
    remove: (kind, id) => step(() => notesOf(kind).delete(id)),
    list: (kind) =>
      step(() =>
        [...notesOf(kind)].map(([id, { text }]) => ({ id, text })).sort((a, b) => (a.id < b.id ? -1 : 1)),
      ),
  }
}
