/** Finds the jobs among a module's exports, and the holdfast() they belong to. */
import { isJob, type UntypedJob } from '../client/job.ts'
import { ownerOf } from '../core/job-mark.ts'
import { HoldfastError } from '../errors.ts'
import { Hub } from '../hub.ts'

export interface FoundJobs {
  readonly hub: Hub
  readonly jobs: readonly UntypedJob[]
  /** Names of contracts without an implementation in this module: enqueued here, run elsewhere. */
  readonly contracts: readonly string[]
}

/** Searches the exports and the default export's fields, and one level into lists and plain objects there. */
export function findJobs(exports: object, file: string): FoundJobs {
  const found = new Map<UntypedJob, string>()
  for (const [name, value] of [...entries(exports), ...entries(get(exports, 'default'))]) {
    if (isJob(value)) found.set(value, name)
    else for (const [field, inner] of entries(value)) if (isJob(inner)) found.set(inner, `${name}.${field}`)
  }
  const [first] = found.keys()
  if (first === undefined)
    throw noJobs(`${file} exports no job${list(' (it exports ', Object.keys(exports), ')')}.`)
  refuseTwoOwners(found, file)
  return sortOut(first, [...found.keys()], file)
}

function sortOut(first: UntypedJob, found: readonly UntypedJob[], file: string): FoundJobs {
  // Through the job's own core, so that a module with its own copy of the library is served by that copy.
  const hub = Hub.of(ownerOf(first) ?? {})
  // By name: a job may be exported twice, and a contract together with its implementation.
  const byName = [...new Map(found.map((job) => [job.name, job])).values()]
  const hasHandler = (job: UntypedJob): boolean => hub.core.registry.get(job.name)?.run !== undefined
  const jobs = byName.filter(hasHandler)
  const contracts = byName.filter((job) => !hasHandler(job)).map((job) => job.name)
  if (jobs.length > 0) return { hub, jobs, contracts }
  throw noJobs(
    `${file} exports only contracts without an implementation: ${contracts.join(', ')}.`,
    'Call contract.implement(run) in this module or in one that it imports.',
  )
}

function refuseTwoOwners(found: ReadonlyMap<UntypedJob, string>, file: string): void {
  const owners = new Map([...found].map(([job, name]) => [ownerOf(job), name]))
  if (owners.size <= 1) return
  const names = [...owners.values()].join(' and ')
  throw new HoldfastError(
    'HF_BAD_MODULE',
    `${file} exports jobs of ${owners.size} holdfast() objects: ${names}.`,
    {
      hint: 'A worker serves one holdfast(): share one among the jobs, or put each in its own module with its own worker.',
    },
  )
}

function entries(value: unknown): [string, unknown][] {
  return isContainer(value) ? Object.entries(value) : []
}

function get(value: object, field: string): unknown {
  return (value as Record<string, unknown>)[field]
}

/** A list, a plain object or a module namespace: the usual ways to group jobs, and nothing large or exotic. */
function isContainer(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || isJob(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return Array.isArray(value) || prototype === null || prototype === Object.prototype
}

function list(before: string, names: readonly string[], after: string): string {
  return names.length === 0 ? '' : `${before}${names.join(', ')}${after}`
}

function noJobs(message: string, hint?: string): HoldfastError {
  return new HoldfastError('HF_NO_JOBS', message, hint === undefined ? {} : { hint })
}
