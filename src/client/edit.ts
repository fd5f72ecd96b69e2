/** Changes a waiting job: parsed and validated as at its enqueue, before anything is written. */
import { HoldfastError } from '../errors.ts'
import type { JobDefinition } from '../job/definition.ts'
import type { JobId } from '../job/ids.ts'
import { readDue } from '../job/new-job.ts'
import { encodePayload, parseInput } from '../job/payload.ts'
import { headStartMs, readPriority } from '../job/rank.ts'
import type { JobEdit } from '../stores/store.ts'
import type { Core } from '../core/core.ts'
import { refuseUnknown } from '../core/settings.ts'
import type { JobChanges } from './types.ts'

const FIELDS: ReadonlySet<string> = new Set(['input', 'priority', 'in', 'at'])

export async function editJob(
  core: Core,
  definition: JobDefinition,
  id: string,
  changes: JobChanges<unknown>,
): Promise<boolean> {
  refuseUnknown(changes, FIELDS, 'edit()')
  const { name } = definition
  const record = await core.store.job(id as JobId)
  if (record?.name !== name) throw notFound(name, id)
  const edit = await readEdit(core, definition, record.queue, changes)
  const answer = await core.store.edit(record, edit)
  if (answer === 'missing') throw notFound(name, id)
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
  const level = priority === undefined ? undefined : readPriority(priority)
  const isMoved = changes.in !== undefined || changes.at !== undefined
  return {
    ...('input' in changes && { payload: encodePayload(input, name) }),
    ...(level !== undefined && {
      rank: { priority: level, headStartMs: headStartMs(level, core.queues.agingMs(queue)) },
    }),
    ...(isMoved && { due: readDue(changes) }),
  }
}

function notFound(name: string, id: string): HoldfastError {
  return new HoldfastError('HF_JOB_NOT_FOUND', `Job "${name}" ${id} is not in the store.`)
}
