/**
 * A chain of responsibility as a handler: processors run in order, and the first that does not pass has handled the
 * job. If all pass, a retry cannot help: the job is a dead letter at once, and its error names the processors.
 */
import { Fatal, HoldfastError } from '../errors.ts'
import type { RunContext } from '../job/context.ts'
import { show } from '../job/show.ts'

declare const passed: unique symbol
/** Returned by a processor to leave the job to the next one. */
export interface Pass {
  readonly [passed]: true
}

export interface Processor<In, Ctx, R> {
  /** Its name in errors. */
  readonly name: string
  /** Handles the job, or returns pass(). If it throws, the attempt fails, and no further processor runs. */
  run(context: RunContext<In, Ctx>, pass: () => Pass): R | Pass | Promise<R | Pass>
}

const PASS = Object.freeze({}) as Pass
const pass = (): Pass => PASS

/** For `run` of a job: `run: chain([first, second])`. */
export function chain<In, Ctx, R>(
  processors: readonly Processor<In, Ctx, R>[],
): (context: RunContext<In, Ctx>) => Promise<Exclude<R, Pass>> {
  const asked = [...processors]
  refuseBad(asked)
  const names = asked.map(({ name }) => name).join(', ')
  return async (context) => {
    for (const processor of asked) {
      const result = await processor.run(context, pass)
      if (result !== PASS) return result as Exclude<R, Pass>
    }
    throw new Fatal(`No processor handled this job; tried: ${names}.`)
  }
}

function refuseBad(processors: readonly unknown[]): void {
  if (processors.length === 0) throw bad('A chain needs at least one processor.')
  const names = new Set<unknown>()
  for (const processor of processors) {
    const { name, run } = Object(processor) as Partial<Processor<unknown, unknown, unknown>>
    if (typeof name !== 'string' || name === '') throw bad(`A processor of a chain is called ${show(name)}.`)
    if (typeof run !== 'function') throw bad(`Processor ${show(name)} of a chain has no \`run\`.`)
    if (names.has(name)) throw bad(`Two processors of a chain are called ${show(name)}.`)
    names.add(name)
  }
}

function bad(message: string): HoldfastError {
  return new HoldfastError('HF_BAD_JOB', message, {
    hint: "Give chain() a list of { name, run }, each with a name of its own: chain([{ name: 'push', run }]).",
  })
}
