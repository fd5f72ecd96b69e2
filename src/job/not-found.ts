/** The errors of a name or an id that names nothing, each with its own code and hint. */
import { HoldfastError, type ErrorCode } from '../errors.ts'
import type { JobId } from './ids.ts'
import { show } from './show.ts'

export type Named = 'job' | 'contract' | 'subscriber' | 'queue' | 'worker'

const KINDS: Readonly<Record<Named, { readonly code: ErrorCode; readonly todo: string }>> = {
  job: { code: 'HF_UNKNOWN_JOB', todo: 'Define it with hf.job() of the same holdfast()' },
  contract: { code: 'HF_UNKNOWN_JOB', todo: 'Define it with hf.contract() of the same holdfast()' },
  subscriber: { code: 'HF_UNKNOWN_JOB', todo: 'Define it with hf.subscribe() of the same holdfast()' },
  queue: { code: 'HF_UNKNOWN_QUEUE', todo: 'Declare it in holdfast({ queues: { … } })' },
  worker: { code: 'HF_UNKNOWN_WORKER', todo: 'Define it with hf.workers.define()' },
}

/** Nothing of that name is defined in this process. `known`: the names that are. */
export function notFound(kind: Named, name: unknown, known: readonly string[] = []): HoldfastError {
  const { code, todo } = KINDS[kind]
  const orElse = known.length === 0 ? 'correct the name' : `use one of: ${known.join(', ')}`
  return new HoldfastError(code, `There is no ${kind} named ${show(name)}.`, {
    hint: `${todo}, or ${orElse}.`,
  })
}

/** The store has no job of that id, or not one of that name. */
export function jobNotFound(id: JobId | string, name?: string): HoldfastError {
  const job = name === undefined ? `Job ${id}` : `Job ${show(name)} ${id}`
  return new HoldfastError('HF_JOB_NOT_FOUND', `${job} is not in the store.`)
}

export function scheduleNotFound(id: string): HoldfastError {
  return new HoldfastError('HF_SCHEDULE_NOT_FOUND', `There is no schedule ${show(id)} any more.`)
}
