/** Enqueues: a flush is one statement, whichever connection or transaction it goes through. */
import type { JobId } from '../../job/ids.ts'
import type { NewJob } from '../../job/record.ts'
import { badFlush } from '../flush.ts'
import { checkFlush } from '../write-check.ts'
import type { EnqueueAnswer, Flush } from '../store.ts'
import type { Queryable, Statement } from './executor.ts'
import { intArray, textArray, uuidArray } from './literals.ts'
import { factsOf, holdNumber } from './packed-jobs.ts'
import { sqlState } from './server-errors.ts'
import type { Statements } from './statements.ts'

export type Answers = readonly (readonly [id: JobId, outcome: EnqueueAnswer['outcome']])[]

export async function enqueue(
  db: Queryable,
  statements: Statements,
  flush: Flush,
  withinMs?: number,
): Promise<readonly EnqueueAnswer[]> {
  const { statement, values } = packFlush(statements, flush)
  const [row] = await db
    .query<{ answers: Answers | null }>(statement, values, withinMs)
    .catch((error: unknown) => {
      throw sqlState(error) === UNIQUE_VIOLATION
        ? badFlush('postgres', 'a new job with an id that exists already')
        : error
    })
  return readAnswers(flush, row?.answers ?? null)
}

const UNIQUE_VIOLATION = '23505'

export interface PackedFlush {
  readonly statement: Statement
  /** Texts only: callers' own libraries get them, too. */
  readonly values: (string | null)[]
}

export function packFlush(statements: Statements, flush: Flush): PackedFlush {
  checkFlush('postgres', flush)
  const { id, jobs } = flush
  return jobs.some((job) => job.unique !== null)
    ? { statement: statements.enqueueUnique, values: [id, `[${jobs.map(keyedJob).join(',')}]`] }
    : { statement: statements.enqueue, values: [id, ...columns(jobs)] }
}

export function readAnswers({ jobs }: Flush, answers: Answers | null): readonly EnqueueAnswer[] {
  // Nothing, or an empty list for a repeat, stands for "all inserted", which is nearly always.
  if (answers === null || answers.length === 0) return jobs.map(({ id }) => ({ id, outcome: 'inserted' }))
  return answers.map(([id, outcome]) => ({ id, outcome }))
}

function columns(jobs: readonly NewJob[]): (string | null)[] {
  const delayed = jobs.some(({ due }) => 'atMs' in due || due.inMs > 0)
  return [
    uuidArray(jobs.map((job) => job.id)),
    textArray(onceIfSame(jobs.map((job) => job.queue))),
    textArray(onceIfSame(jobs.map((job) => job.name))),
    intArray(onceIfSame(jobs.map((job) => job.priority))),
    intArray(onceIfSame(jobs.map((job) => Math.round(job.headStartMs)))),
    delayed ? intArray(jobs.map(({ due }) => ('inMs' in due ? Math.round(due.inMs) : null))) : null,
    delayed ? intArray(jobs.map(({ due }) => ('atMs' in due ? Math.round(due.atMs) : null))) : null,
    jobs.map(factsOf).join('\n'),
    jobs.map((job) => job.payload).join('\x1e'),
  ]
}

function onceIfSame<T>(list: readonly T[]): readonly T[] {
  return list.every((one) => one === list[0]) ? list.slice(0, 1) : list
}

/** As enqueue_unique and fire take it. */
export function keyedJob(job: NewJob): string {
  const { id, queue, name, priority, headStartMs, due, unique, payload } = job
  const columns = {
    id,
    queue,
    name,
    priority,
    head_start: Math.round(headStartMs),
    due_in: 'inMs' in due ? Math.round(due.inMs) : null,
    due_at: 'atMs' in due ? Math.round(due.atMs) : null,
    key: unique === null ? null : unique.key,
    hold: unique === null ? null : holdNumber(unique.hold),
    on_conflict: unique === null ? null : unique.onConflict,
    payload,
  }
  return `${JSON.stringify(columns).slice(0, -1)},"facts":${factsOf(job)}}`
}
