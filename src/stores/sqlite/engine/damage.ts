/**
 * Notices rows that are not as they were written: SQLite has no checksums, so a flipped bit in a value is a value to it.
 * See docs/decisions/0014-embedded-sqlite-damage.md.
 */
import { crc32 } from 'node:zlib'
import { HoldfastError } from '../../../errors.ts'

/** The columns of `holdfast_job` that its sum covers: all but seq. */
interface JobColumns {
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly priority: number
  readonly head: number
  readonly due: number
  readonly created: number
  readonly attempt: number
  readonly max_attempts: number
  readonly crashes: number
  readonly max_crashes: number
  readonly unique_key: string | null
  readonly key_while: string | null
  readonly key_ms: number | null
  readonly options: string | null
  readonly payload: string
}

interface EndedColumns {
  readonly state: string
  readonly finished: number
  readonly token: number | null
  readonly worker: string | null
  readonly run_ms: number | null
  readonly result: string | null
  readonly dropped: number
  readonly reason: string | null
}

interface PastColumns {
  readonly error: string | null
  readonly fingerprint: string | null
  readonly attempts: string | null
  readonly log: string | null
  readonly progress: string | null
}

interface Summed {
  readonly sum: number
}

export function damaged(what: string): HoldfastError {
  return new HoldfastError('HF_STORE_DAMAGED', `The database is damaged: ${what}.`)
}

/** JSON that this store wrote. */
export function parseStored<T>(text: string): T {
  try {
    return JSON.parse(text) as T
  } catch {
    throw damaged('a stored value is not the JSON that was written')
  }
}

/** About 1.4 µs at a kilobyte; as an array that is joined, the columns alone would take as long. */
export function sumOfJob(job: JobColumns): number {
  const { id, name, queue, priority, head, due, created, attempt, crashes } = job
  const times = `${priority} ${head} ${due} ${created}`
  const tries = `${attempt} ${job.max_attempts} ${crashes} ${job.max_crashes}`
  const key = `${job.unique_key}\n${job.key_while} ${job.key_ms}`
  return crc32(job.payload, crc32(`${id}\n${name}\n${queue}\n${times}\n${tries}\n${key}\n${job.options}`))
}

export function sumOfEnded(seq: number, end: EndedColumns): number {
  const { state, finished, token, worker, run_ms: runMs, result, dropped, reason } = end
  return crc32(`${seq} ${state} ${finished} ${token} ${worker} ${runMs} ${dropped}\n${reason}\n${result}`)
}

export function sumOfPast(seq: number, { error, fingerprint, attempts, log, progress }: PastColumns): number {
  return crc32(`${seq}\n${error}\n${fingerprint}\n${attempts}\n${log}\n${progress}`)
}

export function checkJob<Row extends JobColumns & Summed & { readonly seq: number }>(row: Row): Row {
  if (row.sum !== sumOfJob(row)) throw damaged(`job ${row.seq} (${row.id}) is not as it was written`)
  return row
}

export function checkEnded<Row extends EndedColumns & Summed>(seq: number, end: Row): Row {
  if (end.sum !== sumOfEnded(seq, end)) throw damaged(`the end of job ${seq} is not as it was written`)
  return end
}

export function checkPast<Row extends PastColumns & Summed>(seq: number, past: Row): Row {
  if (past.sum !== sumOfPast(seq, past)) throw damaged(`the past of job ${seq} is not as it was written`)
  return past
}
