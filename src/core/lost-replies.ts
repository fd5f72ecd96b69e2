/** The current state of jobs whose change was repeated because the reply to the first try was lost. */
import type { JobId } from '../job/ids.ts'
import type { JobRecord } from '../job/record.ts'
import type { JobEdit, JobPage, ListQuery } from '../stores/store.ts'

/** Jobs are read whole, with their payloads. */
const PAGE = 100

/** Whether a job has all values of an edit. `before`: the job before the edit. */
export function isEdited(now: JobRecord, before: JobRecord, { payload, rank, due }: JobEdit): boolean {
  const isMoved =
    due === undefined || ('atMs' in due ? now.dueAt === Math.round(due.atMs) : now.dueAt !== before.dueAt)
  return (
    isMoved &&
    (payload === undefined || now.payload === payload) &&
    (rank === undefined || now.priority === rank.priority)
  )
}

/** How many of the jobs were replayed or discarded: they exist and are not dead, or they do not exist. */
export async function countDone(
  ids: readonly JobId[],
  type: 'replay' | 'discard',
  read: (query: ListQuery) => Promise<JobPage>,
): Promise<number> {
  let found = 0
  let dead = 0
  let after: JobId | null = null
  do {
    const page: JobPage = await read({ ids, limit: PAGE, after })
    found += page.jobs.length
    dead += page.jobs.filter(({ state }) => state === 'dead').length
    after = page.next
  } while (after !== null)
  return type === 'replay' ? found - dead : new Set(ids).size - found
}
