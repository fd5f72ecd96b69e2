/** Notes, in the control shard. */
import type { Note, Notes } from '../store.ts'
import { checkNote } from '../write-check.ts'
import type { Run } from './run.ts'
import type { Shards } from './shards.ts'

export function redisNotes(run: Run, { control }: Shards): Notes {
  return {
    async put(kind, id, text, ttlMs) {
      checkNote(kind, id, text, ttlMs)
      const args = text === null ? [kind, id] : [kind, id, text, ttlMs === null ? '' : Math.round(ttlMs)]
      return (await run<number>(control, 'put_note', args)) === 1
    },
    list: async (kind) => readAll(await run<string[]>(control, 'list_notes', [kind])),
  }
}

function readAll(flat: readonly string[]): Note[] {
  const notes: Note[] = []
  for (let at = 0; at < flat.length; at += 2) notes.push({ id: flat[at] ?? '', text: flat[at + 1] ?? '' })
  return notes.sort((a, b) => (a.id < b.id ? -1 : 1))
}
