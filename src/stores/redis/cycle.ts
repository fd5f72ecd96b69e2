/** Settle and claim: one round trip. */
import type { Token } from '../../job/ids.ts'
import type { ClaimedJob } from '../../job/record.ts'
import type { CycleAnswer, CycleRequest, Lease } from '../store.ts'
import { jobOf } from './bodies.ts'
import type { Run } from './run.ts'
import { packSettles } from './settles.ts'
import type { Shards } from './shards.ts'

type LeaseRow = readonly [
  token: string,
  claimedAt: number,
  popped: readonly string[],
  records: readonly (string | null)[],
  pasts: readonly (string | null)[],
]

type CycleRow = readonly [alive: number, letters: readonly string[], leases: readonly LeaseRow[]]

/** Tokens of one tick differ by this, also where a client has leases of several shards. */
const SEQ_END = 512

export class Cycles {
  readonly #run: Run
  readonly #shards: Shards
  #seq = 0

  constructor(run: Run, shards: Shards) {
    this.#run = run
    this.#shards = shards
  }

  async cycle({ worker, settle, claim }: CycleRequest): Promise<CycleAnswer> {
    const { args, read } = packSettles(settle)
    const queue = claim === null ? '' : claim.queue
    const shard = claim === null ? this.#shards.control : this.#shards.of(queue)
    const [limit, suspects] = claim === null ? [0, 0] : [claim.limit, claim.suspects ? 1 : 0]
    this.#seq = (this.#seq + 1) % SEQ_END
    const request = [worker, queue, limit, suspects, this.#seq, ...args]
    const [alive, letters, leases] = await this.#run<CycleRow>(shard, 'cycle', request)
    return { alive: alive === 1, settled: read(letters), leases: leases.map((row) => leaseOf(row, queue)) }
  }
}

function leaseOf([token, claimedAt, popped, records, pasts]: LeaseRow, queue: string): Lease {
  const jobs: ClaimedJob[] = records.map((record, index) => {
    const id = popped[2 * index] ?? ''
    if (record === null) throw new Error(`Job ${id} was claimed and has no record.`)
    return jobOf({ id, record, past: pasts[index] ?? null, rank: Number(popped[2 * index + 1]), running: 1 })
  })
  return { token: Number(token) as Token, queue, claimedAt, jobs }
}
