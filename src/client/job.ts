/** The object that users hold for a job. */
import type { JobId } from '../job/ids.ts'
import type { EnqueueOptions } from '../job/new-job.ts'
import type { Core } from './core.ts'
import { jobHandle } from './handle.ts'
import type { Item, Job } from './types.ts'

const JOB = Symbol.for('holdfast.job')

/** A job whose types are not known here; the public signatures in holdfast.ts give them back. */
export type UntypedJob = Job<string, unknown, unknown, string>

export function jobObject(core: Core, name: string): UntypedJob {
  // Looked up each time: a contract gets its handler later.
  const item = (input: unknown, options: EnqueueOptions = {}) => ({
    definition: core.jobNamed(name),
    input,
    options,
  })
  const job: UntypedJob = {
    name,
    async enqueue(...[input, options]) {
      const { id, outcome } = await core.enqueuer.one(item(input, options))
      return jobHandle(core, id, name, outcome)
    },
    enqueueMany: (async (inputs: Iterable<unknown> | AsyncIterable<unknown>, options?: EnqueueOptions) => {
      const { definition } = item(undefined)
      if (!Array.isArray(inputs))
        return core.enqueuer.many(definition, inputs, options ?? {}, () => undefined)
      const ids: string[] = []
      const counts = await core.enqueuer.many(definition, inputs, options ?? {}, (answer, index) => {
        ids[index] = answer.id
      })
      return { ...counts, ids }
    }) as UntypedJob['enqueueMany'],
    with: (...[input, options]): Item => ({ kind: 'item', job: name, input, options: options ?? {} }),
    async get(id) {
      const record = await core.connection.persist(`read job ${id}`, (store) => store.admin.get(id as JobId))
      return record?.name === name ? jobHandle(core, id, name, null) : null
    },
  }
  return job
}

/** Marks the object as a job, and closes it to changes. */
export function sealJob<J extends object>(core: Core, job: J): J {
  return Object.freeze(Object.defineProperty(job, JOB, { value: core }))
}

/** Whether a value is a job made by some copy of this library: what a worker looks for among a module's exports. */
export function isJob(value: unknown): value is UntypedJob {
  return typeof value === 'object' && value !== null && JOB in value
}

/** What the job belongs to: the core of its own holdfast(), of whichever copy of this library. */
export function ownerOf(job: object): object | undefined {
  return (job as { [JOB]?: object })[JOB]
}
