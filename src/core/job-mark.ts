/** The mark on public job objects: it distinguishes a job from any other value, and leads to its owner. */
const JOB = Symbol.for('holdfast.job')

/** Any job, whatever its input: enough to run it, not to enqueue it. */
export interface AnyJob {
  readonly name: string
  readonly enqueue: (...args: never) => Promise<unknown>
}

/** Marks the object as a job, and closes it to changes. */
export function sealJob<J extends object>(owner: object, job: J): J {
  return Object.freeze(Object.defineProperty(job, JOB, { value: owner }))
}

/** Whether a value is a job made by some copy of this library. */
export function isSealedJob(value: unknown): value is object {
  return typeof value === 'object' && value !== null && JOB in value
}

/** The job's owner: the core of its holdfast(), possibly of another copy of this library. */
export function ownerOf(job: object): object | undefined {
  return (job as { [JOB]?: object })[JOB]
}
