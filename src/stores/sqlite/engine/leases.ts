/** Leases as a step works on them. The lease row is the fence: once it is gone, its token settles nothing. */
import type { Token } from '../../../job/ids.ts'
import { damaged, parseStored } from './damage.ts'
import type { Engine } from './engine.ts'
import type { LeaseRow } from './rows.ts'

export interface RequestedCancel {
  readonly reason: string | null
  readonly heard: boolean
}

export class OpenLease {
  readonly row: LeaseRow
  /** By position. */
  readonly seqs: readonly number[]
  /** Cancels of open positions. */
  readonly cancels: ReadonlyMap<number, RequestedCancel>
  readonly #engine: Engine
  readonly #done: string[]
  #open: number

  private constructor(engine: Engine, row: LeaseRow) {
    this.#engine = engine
    this.row = row
    const leased = engine.db.get<{ seqs: string }>('leased', row.token)
    if (leased === undefined) throw damaged(`lease ${row.token} has no jobs`)
    this.seqs = parseStored<number[]>(leased.seqs)
    this.cancels = cancelsOf(engine, row.token)
    this.#done = (row.done ?? '0'.repeat(row.size)).split('')
    this.#open = row.open
  }

  static at(engine: Engine, token: Token): OpenLease | undefined {
    const row = engine.db.get<LeaseRow>('lease', token)
    return row === undefined ? undefined : new OpenLease(engine, row)
  }

  static of(engine: Engine, row: LeaseRow): OpenLease {
    return new OpenLease(engine, row)
  }

  /** The job that is open at a position; undefined if there is no such position, null if it is settled. */
  openAt(position: number): number | null | undefined {
    const seq = this.seqs[position]
    return seq === undefined ? undefined : this.#done[position] === '1' ? null : seq
  }

  openPositions(): number[] {
    return [...this.seqs.keys()].filter((position) => this.#done[position] !== '1')
  }

  /** Takes one position out: its job is about to be somewhere else. */
  close(position: number): void {
    if (typeof this.openAt(position) !== 'number')
      throw new Error(`Position ${position} of lease ${this.row.token} is not open.`)
    this.#done[position] = '1'
    this.#open--
    if (this.cancels.has(position)) this.#engine.db.run('deleteCancel', this.row.token, position)
    this.#engine.count(this.row.queue, 'running', -1)
  }

  /** Writes what was closed; the lease ends with its last position. */
  save(): void {
    const { db } = this.#engine
    const { token, open } = this.row
    if (this.#open === open) return
    if (this.#open > 0) return db.runOne('markSettled', this.#open, this.#done.join(''), token)
    this.#delete()
  }

  /** Takes the lease away from its worker, and closes what is open. Returns those positions. */
  revoke(): number[] {
    const open = this.openPositions()
    this.#engine.db.run('revoke', this.row.token, this.row.done)
    for (const position of open) this.close(position)
    this.#delete()
    return open
  }

  #delete(): void {
    this.#engine.db.runOne('deleteLease', this.row.token)
    this.#engine.db.runOne('deleteLeased', this.row.token)
  }
}

function cancelsOf(engine: Engine, token: Token): ReadonlyMap<number, RequestedCancel> {
  interface CancelRow {
    readonly position: number
    readonly reason: string | null
    readonly heard: number
  }
  const rows = engine.db.all<CancelRow>('cancelsOf', token)
  return new Map(rows.map(({ position, reason, heard }) => [position, { reason, heard: heard === 1 }]))
}
