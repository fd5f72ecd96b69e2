/** Changes a job that waits: read and judged as at its enqueue, before anything is written. */
import type { JobDefinition } from '../job/definition.ts'
import type { JobId } from '../job/ids.ts'
import { NEW_JOB_FIELDS, readDue } from '../job/new-job.ts'
import { jobNotFound } from '../job/not-found.ts'
import { asGiven, locate, readersFor, refuseUnknown } from '../job/options.ts'
import { encodePayload, parseInput } from '../job/payload.ts'
import { headStartMs } from '../job/rank.ts'
import type { JobEdit } from '../stores/store.ts'
import type { Core } from '../core/core.ts'
import type { JobChanges } from './types.ts'

const FIELDS = readersFor<JobChanges<unknown>>()({
  input: asGiven,
  priority: NEW_JOB_FIELDS.priority,
  in: NEW_JOB_FIELDS.in,
  at: NEW_JOB_FIELDS.at,
})
const { path: PATH, of: PATHS } = locate('edit()', FIELDS)

export async function editJob(
  core: Core,
  definition: JobDefinition,
  id: string,
  changes: JobChanges<unknown>,
): Promise<boolean> {
  refuseUnknown(changes, PATH, FIELDS)
  const { name } = definition
  const record = await core.store.job(id as JobId)
  if (record?.name !== name) throw jobNotFound(id, name)
  const edit = await readEdit(core, definition, record.queue, changes)
  const answer = await core.store.edit(record, edit)
  if (answer === 'missing') throw jobNotFound(id, name)
  return answer === 'edited'
}

async function readEdit(
  core: Core,
  { name, schema }: JobDefinition,
  queue: string,
  changes: JobChanges<unknown>,
): Promise<JobEdit> {
  const { input, priority } = changes
  if ('input' in changes) await parseInput(schema, input, name)
  const level = priority === undefined ? undefined : FIELDS.priority(priority, PATHS.priority)
  const isMoved = changes.in !== undefined || changes.at !== undefined
  return {
    ...('input' in changes && { payload: encodePayload(input, name) }),
    ...(level !== undefined && {
      rank: { priority: level, headStartMs: headStartMs(level, core.queues.agingMs(queue)) },
    }),
    ...(isMoved && { due: readDue(changes, PATHS) }),
  }
}
