import { HoldfastError } from '../errors.ts'
import type { JobId } from '../job/ids.ts'
import { isUuid } from '../std/ids.ts'

/** Refuses a cursor that no page can have returned, before the server is asked. */
export function checkCursor(after: JobId | null): JobId | null {
  if (after === null || isUuid(after)) return after
  throw new HoldfastError('HF_BAD_CURSOR', `${JSON.stringify(after)} is not the cursor of a page.`)
}
