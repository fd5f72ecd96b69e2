/**
 * What crosses between the threads in bulk, as arrays: a copy of an object between threads spells out the name of every
 * property, which takes three to four times as long as its values (2 µs against 0.5 µs for a claimed job of a kilobyte).
 */
import type { ClaimedJob, NewJob } from '../../../job/record.ts'
import { packOptions, unpackOptions, type PackedOptions } from '../../job-options.ts'
import type { CycleAnswer, CycleRequest, Flush, Lease, SettleRequest } from '../../store.ts'
import type { StepName } from '../engine/steps.ts'

/** Arguments of a step, on their way to the thread. */
export function packArgs(name: StepName, args: readonly unknown[]): readonly unknown[] {
  if (name === 'enqueue') return [packFlush(args[0] as Flush)]
  return name === 'cycle' ? [packCycle(args[0] as CycleRequest)] : args
}

export function unpackArgs(name: StepName, args: readonly unknown[]): readonly unknown[] {
  if (name === 'enqueue') return [unpackFlush(args[0] as FlushTuples)]
  return name === 'cycle' ? [unpackCycle(args[0] as CycleTuples)] : args
}

/** What a step returned, on its way back. */
export function packAnswer(name: StepName, answer: unknown): unknown {
  return name === 'cycle' ? packCycleAnswer(answer as CycleAnswer) : answer
}

export function unpackAnswer(name: StepName, answer: unknown): unknown {
  return name === 'cycle' ? unpackCycleAnswer(answer as AnswerTuples) : answer
}

type NewTuple = readonly [
  id: NewJob['id'],
  name: string,
  queue: string,
  payload: string,
  priority: number,
  headStartMs: number,
  maxAttempts: number,
  maxCrashes: number,
  options: PackedOptions | null,
  inMs: number | null,
  atMs: number | null,
  unique: NewJob['unique'],
]

interface FlushTuples {
  readonly id: Flush['id']
  readonly jobs: readonly NewTuple[]
}

function packFlush({ id, jobs }: Flush): FlushTuples {
  return { id, jobs: jobs.map(packNew) }
}

function unpackFlush({ id, jobs }: FlushTuples): Flush {
  return { id, jobs: jobs.map(unpackNew) }
}

function packNew(job: NewJob): NewTuple {
  const { id, name, queue, payload, priority, headStartMs, maxAttempts, maxCrashes, due, unique } = job
  const [inMs, atMs] = 'inMs' in due ? [due.inMs, null] : [null, due.atMs]
  const options = packOptions(job)
  return [
    id,
    name,
    queue,
    payload,
    priority,
    headStartMs,
    maxAttempts,
    maxCrashes,
    options,
    inMs,
    atMs,
    unique,
  ]
}

function unpackNew(tuple: NewTuple): NewJob {
  const [id, name, queue, payload, priority, headStartMs, maxAttempts, maxCrashes] = tuple
  const { group, limits, envelope } = unpackOptions(tuple[8])
  const inMs = tuple[9]
  return {
    id,
    name,
    queue,
    payload,
    priority,
    headStartMs,
    maxAttempts,
    maxCrashes,
    group,
    limits,
    envelope,
    due: inMs === null ? { atMs: tuple[10] ?? 0 } : { inMs },
    unique: tuple[11],
  }
}

/** Most settles: a job that is completed and leaves no record. The others stay what they are. */
type SettleTuple =
  | SettleRequest
  | readonly [
      token: SettleRequest['token'],
      position: number,
      runMs: number,
      forget: boolean,
      result: string | null,
      resultDropped: boolean,
    ]

interface CycleTuples extends Omit<CycleRequest, 'settle'> {
  readonly settle: readonly SettleTuple[]
}

function packCycle({ settle, ...rest }: CycleRequest): CycleTuples {
  return { ...rest, settle: settle.map(packSettle) }
}

function unpackCycle({ settle, ...rest }: CycleTuples): CycleRequest {
  return { ...rest, settle: settle.map(unpackSettle) }
}

function packSettle(request: SettleRequest): SettleTuple {
  const { token, position, settlement, runMs, forget = false, record = null } = request
  if (settlement.type !== 'completed' || record !== null) return request
  return [token, position, runMs, forget, settlement.result, settlement.resultDropped]
}

function unpackSettle(tuple: SettleTuple): SettleRequest {
  if (!isTuple(tuple)) return tuple
  const [token, position, runMs, forget, result, resultDropped] = tuple
  return { token, position, settlement: { type: 'completed', result, resultDropped }, runMs, forget }
}

function isTuple(tuple: SettleTuple): tuple is Exclude<SettleTuple, SettleRequest> {
  return Array.isArray(tuple)
}

type ClaimedTuple = readonly [
  id: ClaimedJob['id'],
  name: string,
  payload: string,
  priority: number,
  headStartMs: number,
  maxAttempts: number,
  maxCrashes: number,
  options: PackedOptions | null,
  attempt: number,
  crashes: number,
  createdAt: number,
  dueAt: number,
]

interface LeaseTuples extends Omit<Lease, 'jobs'> {
  readonly jobs: readonly ClaimedTuple[]
}

interface AnswerTuples extends Omit<CycleAnswer, 'leases'> {
  readonly leases: readonly LeaseTuples[]
}

function packCycleAnswer({ alive, settled, leases }: CycleAnswer): AnswerTuples {
  return { alive, settled, leases: leases.map((lease) => ({ ...lease, jobs: lease.jobs.map(packClaimed) })) }
}

function unpackCycleAnswer({ alive, settled, leases }: AnswerTuples): CycleAnswer {
  const unpack = (lease: LeaseTuples): Lease => ({
    ...lease,
    jobs: lease.jobs.map((job) => unpackClaimed(job, lease.queue)),
  })
  return { alive, settled, leases: leases.map(unpack) }
}

function packClaimed(job: ClaimedJob): ClaimedTuple {
  const { id, name, payload, priority, headStartMs, maxAttempts, maxCrashes } = job
  const { attempt, crashes, createdAt, dueAt } = job
  const options = packOptions(job)
  return [
    id,
    name,
    payload,
    priority,
    headStartMs,
    maxAttempts,
    maxCrashes,
    options,
    attempt,
    crashes,
    createdAt,
    dueAt,
  ]
}

function unpackClaimed(tuple: ClaimedTuple, queue: string): ClaimedJob {
  const [id, name, payload, priority, headStartMs, maxAttempts, maxCrashes] = tuple
  const { group, limits, envelope } = unpackOptions(tuple[7])
  return {
    id,
    name,
    queue,
    payload,
    priority,
    headStartMs,
    maxAttempts,
    maxCrashes,
    group,
    limits,
    envelope,
    attempt: tuple[8],
    crashes: tuple[9],
    createdAt: tuple[10],
    dueAt: tuple[11],
  }
}
