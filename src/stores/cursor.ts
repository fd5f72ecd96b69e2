import { HoldfastError } from '../errors.ts'
import type { JobId } from '../job/ids.ts'
import { isUuid } from '../std/ids.ts'

/** Refuses what no page ever returned as its cursor, before anything is asked of the server. */
export function checkCursor(after: JobId | null): JobId | null {
  if (after === null || isUuid(after)) return after
  throw new HoldfastError('HF_BAD_CURSOR', `${JSON.stringify(after)} is not the cursor of a page.`)
}
