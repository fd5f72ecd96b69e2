/** Where jobs are, and what that makes of their records. */
import type { JobRecord } from '../../../job/record.ts'
import { checkEnded, damaged, parseStored } from './damage.ts'
import type { Engine } from './engine.ts'
import {
  readPast,
  recordOf,
  type EndedRow,
  type JobRow,
  type LeaseRow,
  type PastRow,
  type Place,
} from './rows.ts'

interface Running {
  readonly lease: LeaseRow
  readonly position: number
}

/** For one step. Which lease holds a job is looked up once for all of them, when the first is asked for. */
export class Places {
  readonly #engine: Engine
  #running: ReadonlyMap<number, Running> | undefined

  constructor(engine: Engine) {
    this.#engine = engine
  }

  of(row: JobRow): Place {
    const end = this.#engine.db.get<EndedRow>('endedBySeq', row.seq)
    if (end !== undefined) return { state: 'ended', end: checkEnded(row.seq, end) }
    const state = this.#engine.waitingState(row)
    return state === null ? { state: 'running', ...this.running(row) } : { state }
  }

  running({ seq, id }: Pick<JobRow, 'seq' | 'id'>): Running & { readonly cancelled: boolean } {
    this.#running ??= runningJobs(this.#engine)
    const running = this.#running.get(seq)
    if (running === undefined) throw damaged(`job ${id} is neither waiting nor final, and no lease holds it`)
    const { lease, position } = running
    const cancelled = this.#engine.db.get('cancelAt', lease.token, position) !== undefined
    return { lease, position, cancelled }
  }

  /** Jobs under leases, in no order. */
  allRunning(): readonly number[] {
    this.#running ??= runningJobs(this.#engine)
    return [...this.#running.keys()]
  }

  record(row: JobRow, place = this.of(row)): JobRecord {
    return recordOf(row, place, readPast(row.seq, this.#engine.db.get<PastRow>('past', row.seq)))
  }
}

function runningJobs({ db }: Engine): ReadonlyMap<number, Running> {
  const running = new Map<number, Running>()
  for (const { seqs, ...lease } of db.all<LeaseRow & { readonly seqs: string }>('leasedJobs')) {
    for (const [position, seq] of parseStored<number[]>(seqs).entries())
      if (lease.done?.[position] !== '1') running.set(seq, { lease, position })
  }
  return running
}
