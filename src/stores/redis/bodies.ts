/**
 * A job's record: everything that no attempt changes, as the text that Redis holds. The payload follows the JSON as it
 * was given, so that it is never escaped and no script reads it. Lua reads the rest by index, so new entries are only
 * added at the end; missing ones are null.
 */
import type { AttemptError } from '../../job/failure.ts'
import type { AttemptRecord, ClaimedJob, Due, JobLogLine, NewJob, Progress } from '../../job/record.ts'
import type { UniqueClaim } from '../../job/unique.ts'
import { parseAnswer } from '../broken-answer.ts'
import { packOptions, unpackOptions, type PackedOptions } from '../job-options.ts'
import { unpackId } from './ids.ts'

/** 'r' while ready, 'u' while unfinished, or for so many ms. */
type Hold = 'r' | 'u' | number

type Head = readonly [
  createdAt: number,
  headStartMs: number,
  queue: string,
  name: string,
  priority: number,
  maxAttempts: number,
  maxCrashes: number,
  uniqueKey?: string | null,
  uniqueHold?: Hold | null,
  options?: PackedOptions | null,
]

/**
 * The past of a job, as scripts write it: errors, progress and log lines are JSON inside. Attempt records are separate,
 * one line each; `n` is their number.
 */
interface Past {
  readonly a?: number
  readonly c?: number
  readonly n?: number
  readonly e?: string
  readonly p?: string
  readonly l?: readonly string[]
}

/** The record without the two numbers that the script puts in front. */
export function tailOf(job: NewJob): string {
  const { unique } = job
  const facts = plainFacts(job)
  const options = optionsText(job)
  if (unique === null && options === null) return `${facts}]\n${job.payload}`
  const held =
    unique === null ? 'null,null' : `${JSON.stringify(unique.key)},${JSON.stringify(holdOf(unique))}`
  return `${facts},${held}${options === null ? '' : `,${options}`}]\n${job.payload}`
}

type PlainJob = Pick<NewJob, 'queue' | 'name' | 'priority' | 'maxAttempts' | 'maxCrashes'>

/** By name: most of the jobs that are enqueued one after another are alike. */
const known = new Map<string, { readonly job: PlainJob; readonly text: string }>()
const MOST_KNOWN = 200

/** Open at its end. */
function plainFacts(job: PlainJob): string {
  const before = known.get(job.name)
  if (before !== undefined && isAlike(before.job, job)) return before.text
  const { queue, name, priority, maxAttempts, maxCrashes } = job
  const text = JSON.stringify([queue, name, priority, maxAttempts, maxCrashes]).slice(1, -1)
  if (known.size >= MOST_KNOWN) known.clear()
  known.set(name, { job: { queue, name, priority, maxAttempts, maxCrashes }, text })
  return text
}

function isAlike(a: PlainJob, b: PlainJob): boolean {
  return (
    a.name === b.name &&
    a.queue === b.queue &&
    a.priority === b.priority &&
    a.maxAttempts === b.maxAttempts &&
    a.maxCrashes === b.maxCrashes
  )
}

let last: { readonly envelope: NewJob['envelope']; readonly text: string | null } | undefined

/** Most jobs of a flush share an envelope: none, or that of their event. Null where there is nothing to say. */
function optionsText(job: NewJob): string | null {
  const { envelope, group, limits } = job
  const isShared = group === null && limits.length === 0
  if (isShared && last?.envelope === envelope) return last.text
  const options = packOptions(job)
  const text = options === null ? null : JSON.stringify(options)
  if (isShared) last = { envelope, text }
  return text
}

export function holdOf({ hold }: UniqueClaim): Hold {
  if ('forMs' in hold) return Math.round(hold.forMs)
  return hold.while === 'ready' ? 'r' : 'u'
}

export function headStartOf({ headStartMs }: NewJob): number {
  return Math.round(headStartMs)
}

/** Empty means now, because only the server knows the time. */
export function dueText(due: Due): string {
  if ('atMs' in due) return `@${Math.round(due.atMs)}`
  const inMs = Math.round(due.inMs)
  return inMs === 0 ? '' : `+${inMs}`
}

/** `rank` is null where the job is known by its due time instead. */
export interface Standing {
  readonly id: string
  readonly record: string
  readonly past: string | null
  readonly rank: number | null
  readonly dueAt?: number
  /** Attempts beyond those of the past: the one that runs, or that counted at the end. */
  readonly running: number
}

export function jobOf({ id, record, past, rank, dueAt, running }: Standing): ClaimedJob {
  const cut = record.indexOf('\n')
  const comma = record.indexOf(',')
  const createdAt = Number(record.slice(1, comma))
  const facts = factsIn(record.slice(comma + 1, cut))
  const { headStartMs, queue, name, priority, maxAttempts, maxCrashes, group, limits, envelope } = facts
  const { a = 0, c = 0 } = past === null ? NO_PAST : parseAnswer<Past>('redis', past)
  return {
    id: unpackId(id),
    name,
    queue,
    payload: record.slice(cut + 1),
    priority,
    headStartMs,
    maxAttempts,
    maxCrashes,
    group,
    limits,
    envelope,
    attempt: a + running,
    crashes: c,
    createdAt,
    dueAt: rank === null ? (dueAt ?? createdAt) : rank + headStartMs,
  }
}

type Facts = Omit<ClaimedJob, 'id' | 'payload' | 'attempt' | 'crashes' | 'createdAt' | 'dueAt'>

let lastRead: { readonly text: string; readonly facts: Facts } | undefined

/** From a head behind its first entry. Jobs that are claimed together mostly have it alike: it is parsed once for them. */
function factsIn(text: string): Facts {
  if (lastRead?.text === text) return lastRead.facts
  const [, headStartMs, queue, name, priority, maxAttempts, maxCrashes, , , options = null] =
    parseAnswer<Head>('redis', `[0,${text}`)
  const facts = { headStartMs, queue, name, priority, maxAttempts, maxCrashes, ...unpackOptions(options) }
  lastRead = { text, facts }
  return facts
}

const NO_PAST: Past = {}

export interface Told {
  readonly uniqueKey: string | null
  readonly error: AttemptError | null
  readonly attempts: readonly AttemptRecord[]
  readonly log: readonly JobLogLine[]
  readonly progress: Progress | null
}

export function toldOf(record: string, past: string | null, attempts: string): Told {
  const [, , , , , , , uniqueKey = null] = parseAnswer<Head>('redis', record.slice(0, record.indexOf('\n')))
  const { e, l = [], p } = past === null ? NO_PAST : parseAnswer<Past>('redis', past)
  return {
    uniqueKey,
    error: e === undefined ? null : parseAnswer<AttemptError>('redis', e),
    attempts:
      attempts === '' ? [] : attempts.split('\n').map((line) => parseAnswer<AttemptRecord>('redis', line)),
    log: l.map((line) => parseAnswer<JobLogLine>('redis', line)),
    progress: p === undefined ? null : parseAnswer<Progress>('redis', p),
  }
}

/** The facts that a rescue decides by. */
export interface CrashFacts {
  readonly name: string
  readonly maxCrashes: number
  readonly attempt: number
  readonly crashes: number
}

export function crashFacts(head: string, past: string | null): CrashFacts {
  const [, , , name, , , maxCrashes] = parseAnswer<Head>('redis', head)
  const { a = 0, c = 0 } = past === null ? NO_PAST : parseAnswer<Past>('redis', past)
  return { name, maxCrashes, attempt: a + 1, crashes: c }
}
