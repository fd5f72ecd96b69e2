/** What workers ask of one shard: each call is one script there. */
import type { Token, WorkerId } from '../../job/ids.ts'
import type { ClaimedJob } from '../../job/record.ts'
import { brokenAnswer, parseAnswer } from '../broken-answer.ts'
import {
  MAX_LOG_LINES,
  type CycleAnswer,
  type CycleRequest,
  type HeartbeatAnswer,
  type HeartbeatRequest,
  type Lease,
  type Offer,
  type Report,
  type Store,
  type WakeUp,
} from '../store.ts'
import { jobOf } from './bodies.ts'
import type { RedisValue } from './driver.ts'
import { PACKED_CHARS } from './ids.ts'
import type { Run } from './run.ts'
import { packSettles } from './settles.ts'
import type { Shard } from './shards.ts'

export type WorkerCalls = Pick<Store, 'register' | 'retire' | 'cycle' | 'heartbeat'>

type LeaseRow = readonly [
  token: string,
  claimedAt: number,
  ids: string,
  scores: string,
  records: readonly (string | null)[],
  pasts: readonly (string | null)[],
]

type CycleRow = readonly [
  alive: number,
  letters: readonly string[],
  leases: readonly LeaseRow[],
  offeredAt: number | null,
]

/** A lease as hand_over.lua publishes it. */
type HandedRow = readonly [worker: WorkerId, nth: number, queue: string, lease: LeaseRow]

type HeartbeatRow = readonly [
  alive: number,
  tokens: readonly string[],
  cancels: readonly (readonly [token: string, position: number, reason: string])[],
  paused: readonly string[],
]

/** Number of tokens per token time (125 µs): they differ by this counter, even if a client has leases in several shards. */
const SEQ_END = 512

export class Sequence {
  #last = 0

  next(): number {
    this.#last = (this.#last + 1) % SEQ_END
    return this.#last
  }
}

export class ShardWorkerCalls implements WorkerCalls {
  readonly #run: Run
  readonly #shard: Shard
  readonly #sequence: Sequence
  /** Where this process can be handed leases; null for nowhere. */
  readonly #channel: () => string | null

  constructor(run: Run, shard: Shard, sequence: Sequence, channel: () => string | null = () => null) {
    this.#run = run
    this.#shard = shard
    this.#sequence = sequence
    this.#channel = channel
  }

  /** `leftMs`: what is left of a lease that began in another shard. */
  async register(worker: WorkerId, leaseMs: number, atOnce?: number, leftMs?: number): Promise<void> {
    const left = leftMs === undefined ? '' : Math.round(leftMs)
    await this.#run(this.#shard, 'register', [worker, Math.round(leaseMs), left, atOnce ?? ''])
  }

  async retire(worker: WorkerId): Promise<void> {
    await this.#run(this.#shard, 'retire', [worker])
  }

  async cycle(
    { worker, settle, claim, reports = [], offer }: CycleRequest,
    withinMs?: number,
  ): Promise<CycleAnswer> {
    const { args, read } = packSettles(settle)
    const [queue, limit, suspects] =
      claim === null ? ['', 0, 0] : [claim.queue, claim.limit, claim.suspects ? 1 : 0]
    const request = [worker, queue, limit, suspects, this.#sequence.next(), this.#packOffer(offer), ...args]
    if (reports.length > 0) request.push(MAX_LOG_LINES, ...reports.flatMap(packReport))
    const [alive, letters, rows, offeredAt] = await this.#run<CycleRow>(
      this.#shard,
      'cycle',
      request,
      withinMs,
    )
    const leases = rows.map((row) => leaseOf(row, queue))
    const answer = { alive: alive === 1, settled: read(letters), leases }
    return offeredAt === null ? answer : { ...answer, offeredAt }
  }

  /** As cycle.lua takes it. */
  #packOffer(offer: Offer | undefined): string {
    if (offer === undefined) return ''
    const channel = this.#channel()
    const { nth, queues, forMs, received } = offer
    const jobs = channel === null ? 0 : offer.jobs
    return JSON.stringify({ nth, jobs, queues, forMs, received: received.map(String), channel })
  }

  async heartbeat(request: HeartbeatRequest): Promise<HeartbeatAnswer> {
    const { worker, undelivered, heard = [], atOnce = '', nth = '' } = request
    const places = heard.flatMap(({ token, position }) => [token, position])
    const args = [worker, atOnce, nth, heard.length, ...places, ...undelivered]
    const [alive, tokens, cancels, paused] = await this.#run<HeartbeatRow>(this.#shard, 'heartbeat', args)
    return {
      alive: alive === 1,
      tokens: tokens.map(tokenOf),
      cancelled: cancels.map(([token, position, reason]) => ({
        token: tokenOf(token),
        position,
        reason: parseAnswer<string | null>('redis', reason),
      })),
      paused,
    }
  }
}

/** What was handed over, from the text of a message. */
export function handedOver(text: string): WakeUp | null {
  const [worker, nth, queue, row] = parseAnswer<HandedRow>('redis', text)
  return { type: 'leased', worker, nth, lease: leaseOf(row, queue) }
}

function leaseOf([token, claimedAt, ids, scores, records, pasts]: LeaseRow, queue: string): Lease {
  const ranks = scores.split(' ')
  const jobs: ClaimedJob[] = records.map((record, index) => {
    const id = ids.slice(index * PACKED_CHARS, (index + 1) * PACKED_CHARS)
    if (typeof record !== 'string') throw brokenAnswer('redis', `job ${id} was claimed and has no record`)
    return jobOf({ id, record, past: pasts[index] || null, rank: Number(ranks[index]), running: 1 })
  })
  return { token: tokenOf(token), queue, claimedAt, jobs }
}

function tokenOf(text: string): Token {
  return Number(text) as Token
}

function packReport({ token, position, progress, log }: Report): RedisValue[] {
  const lines = log.slice(-MAX_LOG_LINES).map((line) => JSON.stringify(line))
  return [token, position, progress === null ? '' : JSON.stringify(progress), lines.length, ...lines]
}
