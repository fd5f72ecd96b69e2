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

/**
 * Whether a call failed before anything of it was sent: no connection came about. Of a call that takes several steps,
 * earlier ones may have been taken over a connection that was lost since.
 */
export function neverSent(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  // Node tries each address of a host, and tells of all of them.
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(neverSent)
  const { syscall } = error as { readonly syscall?: unknown }
  return syscall === 'connect' || syscall === 'getaddrinfo' || neverSent(error.cause)
}

export interface CountParts {
  readonly type: 'replay' | 'discard'
  /** Whether a job that completes is deleted at once. */
  readonly forgets: boolean
  readonly read: (query: ListQuery) => Promise<JobPage>
}

/**
 * How many of the jobs were replayed or discarded. Discarded are those that do not exist: an id that never existed cannot
 * be told from them. Replayed are those that exist and are not dead; where completed jobs are deleted at once, also those
 * that do not exist.
 */
export async function countDone(ids: readonly JobId[], { type, forgets, read }: CountParts): Promise<number> {
  let found = 0
  let dead = 0
  let after: JobId | null = null
  do {
    const page: JobPage = await read({ ids, limit: PAGE, after })
    found += page.jobs.length
    dead += page.jobs.filter(({ state }) => state === 'dead').length
    after = page.next
  } while (after !== null)
  const missing = new Set(ids).size - found
  if (type === 'discard') return missing
  return found - dead + (forgets ? missing : 0)
}
