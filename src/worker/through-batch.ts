/**
 * The way of a job to its batch handler and back without a promise of its own: of a job that does nothing, promises are
 * most of what it costs. Where something stands around the handler, it goes the way of all jobs.
 */
import type { Core } from '../core/core.ts'
import type { JobDefinition } from '../job/definition.ts'
import type { Outcome } from '../job/settlement.ts'
import type { Attempt } from './attempt.ts'
import type { Gathered } from './backlog.ts'
import { BatchGroup } from './batch-group.ts'
import { JobContext } from './context.ts'
import {
  batchFunction,
  execute,
  NOTHING_ADDED,
  outcomeOfReturn,
  outcomeOfThrow,
  readInput,
} from './execute.ts'
import type { Reporter } from './reporter.ts'

/** Makes the attempts one call of their handler. */
export function joinBatch(
  { clock }: Core,
  { definition, size }: Gathered,
  attempts: readonly Attempt[],
): void {
  if (attempts.length === 0) return
  const onReturned = (ms: number): void => size.ended(ms)
  const batch = new BatchGroup({ run: batchFunction(definition), clock, size: attempts.length, onReturned })
  for (const attempt of attempts) attempt.batch = batch
}

/** `tell` is called once; with null where the attempt lost its lease: it has no outcome. */
export function throughBatch(
  core: Core,
  attempt: Attempt,
  jobs: ReadonlyMap<string, JobDefinition>,
  reporter: Reporter,
  tell: (attempt: Attempt, outcome: Outcome | null) => void,
): void {
  const definition = jobs.get(attempt.job.name)
  const { batch: group } = attempt
  if (group === undefined || definition === undefined || isSurrounded(definition)) {
    void execute(core, attempt, jobs, reporter).then((outcome) => tell(attempt, outcome))
    return
  }
  const failed = (thrown: unknown): void => tell(attempt, outcomeOfThrow(attempt, thrown))
  const admit = (input: unknown): void =>
    group.admit({
      attempt,
      context: new JobContext({ core, attempt, reporter, definition }, input, NOTHING_ADDED),
      resolve: (returned) => tell(attempt, outcomeOfReturn(attempt, returned)),
      reject: failed,
    })
  let input: unknown
  try {
    input = readInput(attempt, definition)
  } catch (thrown) {
    return failed(thrown)
  }
  if (input instanceof Promise) input.then(admit, failed)
  else admit(input)
}

function isSurrounded({ middleware, output }: JobDefinition): boolean {
  return middleware.length > 0 || output !== undefined
}
