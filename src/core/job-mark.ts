/** The mark on the objects that users hold for their jobs: it tells a job from any other value, and leads to its owner. */
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

/** What the job belongs to: the core of its own holdfast(), of whichever copy of this library. */
export function ownerOf(job: object): object | undefined {
  return (job as { [JOB]?: object })[JOB]
}
