/** The public object of a job. */
import type { JobDefinition } from '../job/definition.ts'
import type { JobId } from '../job/ids.ts'
import { HoldfastError } from '../errors.ts'
import { NEW_JOB_FIELDS, NO_OPTIONS, type NewJobOptions } from '../job/new-job.ts'
import { asGiven, readersFor, readOptions } from '../job/options.ts'
import type { EnqueueAnswer } from '../stores/store.ts'
import { isSealedJob } from '../core/job-mark.ts'
import type { Client } from './client.ts'
import { editJob } from './edit.ts'
import { jobHandle } from './handle.ts'
import type { EnqueueOptions, Item, Job } from './types.ts'

/** A job without its types, which the public signatures in holdfast.ts restore. */
export type UntypedJob = Job<string, unknown, unknown, string>

/** A contract gets its handler later, but nothing here needs one. */
export function jobObject(client: Client, definition: JobDefinition): UntypedJob {
  const { name } = definition
  const job: UntypedJob = {
    name,
    async enqueue(input?: unknown, given?: EnqueueOptions) {
      const { tx, options } = withoutTx(given)
      const { id, outcome } = await client.enqueuer.one({ definition, input, options }, tx)
      return jobHandle(client.core, id, name, outcome)
    },
    enqueueSync(input, given) {
      const { tx, options } = withoutTx(given)
      if (tx === undefined) throw needsTx(name)
      const { id, outcome } = client.enqueuer.oneSync({ definition, input, options }, tx)
      return jobHandle(client.core, id, name, outcome)
    },
    enqueueMany: (async (inputs: Iterable<unknown> | AsyncIterable<unknown>, given?: EnqueueOptions) => {
      if (given !== undefined) readOptions(given, 'enqueueMany()', ENQUEUE_FIELDS)
      const { tx, options } = withoutTx(given)
      const ids: string[] | null = Array.isArray(inputs) ? [] : null
      const keepId = (answer: EnqueueAnswer, index: number): void => {
        if (ids !== null) ids[index] = answer.id
      }
      const counts = await client.enqueuer.many(definition, inputs, options, keepId, tx)
      return ids === null ? counts : { ...counts, ids }
    }) as UntypedJob['enqueueMany'],
    with: (...[input, given]): Item => {
      const { tx, options } = withoutTx(given)
      if (tx !== undefined) throw noTxOfItsOwn(name)
      return { kind: 'item', job: name, input, options }
    },
    schedule: (id, spec) => client.schedules.put(name, id, spec),
    unschedule: (id) => client.schedules.remove(name, id),
    edit: (id, changes) => editJob(client.core, definition, id, changes),
    async get(id) {
      const record = await client.core.store.job(id as JobId)
      return record?.name === name ? jobHandle(client.core, id, name, null) : null
    },
  }
  return job
}

export const ENQUEUE_FIELDS = readersFor<EnqueueOptions>()({ ...NEW_JOB_FIELDS, tx: asGiven })

/** The transaction, and what the job is made of. Undefined is none: many pass on what they may have been given. */
export function withoutTx(given: EnqueueOptions = NO_OPTIONS): { tx: unknown; options: NewJobOptions } {
  // A value that is not an object is rejected by the option reader.
  if (typeof given !== 'object' || given === null || !('tx' in given))
    return { tx: undefined, options: given }
  const { tx, ...options } = given
  return { tx, options }
}

function noTxOfItsOwn(name: string): HoldfastError {
  return new HoldfastError('HF_BAD_OPTION', `Job "${name}" was given { tx } for itself alone.`, {
    hint: 'Jobs that are enqueued together are in one transaction: hf.enqueueMany(items, { tx }).',
  })
}

function needsTx(name: string): HoldfastError {
  return new HoldfastError('HF_BAD_OPTION', `enqueueSync() of job "${name}" was given no { tx }.`, {
    hint: 'Pass the transaction to enqueue in, or use await job.enqueue(input).',
  })
}

/** Marks what a worker looks for among a module's exports. */
export function isJob(value: unknown): value is UntypedJob {
  return isSealedJob(value)
}
