/**
 * Validates payloads twice. Before anything is written, the job's schema validates the input, and the strict codec
 * proves that JSON preserves it. Before the handler, the schema validates again, because jobs outlive deploys. The raw
 * input is stored, so that defaults and coercions apply when the job runs.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { HoldfastError, InvalidInputError, type InputIssue } from '../errors.ts'
import { encodeLossy, encodeStrict, JsonRejected, type JsonLimits } from '../std/json.ts'

export const PAYLOAD_LIMITS: JsonLimits = { maxBytes: 256 * 1024, maxDepth: 128 }

/** JSON text of the input; an input of undefined (a job without one) is stored as null. */
export function encodePayload(
  input: unknown,
  name: string,
  limits: JsonLimits = PAYLOAD_LIMITS,
  of: 'job' | 'event' = 'job',
): string {
  if (input === undefined) return 'null'
  try {
    return encodeStrict(input, limits)
  } catch (error) {
    if (!(error instanceof JsonRejected)) throw error
    const code = error.overLimit ? 'HF_TOO_LARGE' : 'HF_NOT_JSON'
    const what = of === 'job' ? `The input of job "${name}"` : `Event "${name}"`
    throw new HoldfastError(code, `${what} ${describe(error)}`, {
      hint: error.fix,
      cause: error,
    })
  }
}

function describe(error: JsonRejected): string {
  return error.path === '$' ? `${error.problem}.` : `cannot be stored: ${error.path} ${error.problem}.`
}

/** JSON text of what a handler returned: cleaned rather than rejected, because the work is already done. */
export function encodeResult(
  result: unknown,
  limits: JsonLimits = PAYLOAD_LIMITS,
): { json: string | null; dropped: boolean } {
  if (result === undefined) return { json: null, dropped: false }
  const { json, bytes } = encodeLossy(result, limits)
  return { json: json ?? null, dropped: json === undefined && bytes > 0 }
}

/**
 * Validates a value: a promise only if the schema is asynchronous. The store returns an undefined input as null, so a
 * schema that rejects null is also tried with undefined: otherwise an input that an optional schema accepted at the
 * enqueue would be rejected at the run.
 */
export function parseInput(
  schema: StandardSchemaV1 | undefined,
  value: unknown,
  name: string,
  of: 'job' | 'event' = 'job',
): unknown {
  if (schema === undefined) return value ?? undefined
  const result = schema['~standard'].validate(value)
  // No closure for the usual case: this runs twice for each job.
  if (!(result instanceof Promise))
    return result.issues === undefined ? result.value : refusedInput(schema, value, result.issues, name, of)
  return result.then((later) =>
    later.issues === undefined ? later.value : refusedInput(schema, value, later.issues, name, of),
  )
}

function refusedInput(
  schema: StandardSchemaV1,
  value: unknown,
  issues: readonly StandardSchemaV1.Issue[],
  name: string,
  of: 'job' | 'event',
): unknown {
  const refusal = new InvalidInputError(name, issues.map(toIssue), of)
  if (value !== null) throw refusal
  return judge(schema, undefined, () => {
    throw refusal
  })
}

/** Validates a result against its contract. The handler has done its work: running it again would not help. */
export function checkOutput(schema: StandardSchemaV1 | undefined, value: unknown, jobName: string): unknown {
  if (schema === undefined) return value
  const checked = judge(schema, value, ([issue]) => {
    const { path, message } = issue === undefined ? { path: '', message: 'it was refused' } : toIssue(issue)
    const where = path === '' ? '' : ` at ${path}`
    throw new HoldfastError(
      'HF_INVALID_OUTPUT',
      `Job "${jobName}" returned what its contract does not allow${where}: ${message}.`,
    )
  })
  // Validated, not changed: the handler's own result is stored.
  return checked instanceof Promise ? checked.then(() => value) : value
}

function judge(
  schema: StandardSchemaV1,
  value: unknown,
  refused: (issues: readonly StandardSchemaV1.Issue[]) => unknown,
): unknown {
  const accept = (result: StandardSchemaV1.Result<unknown>): unknown =>
    result.issues === undefined ? result.value : refused(result.issues)
  const judged = schema['~standard'].validate(value)
  return judged instanceof Promise ? judged.then(accept) : accept(judged)
}

function toIssue(issue: StandardSchemaV1.Issue): InputIssue {
  // Not issue.path.map: arktype's path is a subclass of Array that maps an empty path to one element.
  const keys = Array.from(issue.path ?? [], (part) => String(typeof part === 'object' ? part.key : part))
  return { path: keys.join('.'), message: issue.message }
}
