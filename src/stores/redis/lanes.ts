/**
 * Each flush once. A producer has lanes, and a lane carries one flush at a time under a growing number; the server keeps
 * the last number of each lane, and with it what it answered. A flush whose answer was lost keeps its lane and number
 * for when it is repeated. So what the server remembers is bounded by how much a producer sends at once, and not by how
 * much it ever sent.
 */
import { HoldfastError } from '../../errors.ts'
import type { FlushId } from '../../job/ids.ts'
import type { Clock } from '../../std/clock.ts'
import type { Random } from '../../std/random.ts'
import { FLUSH_MEMORY_MS, type EnqueueAnswer } from '../store.ts'
import { isReply } from './server-errors.ts'

/** Null stands for "all inserted", which is nearly always. */
export type FlushAnswers = readonly EnqueueAnswer[] | null

interface Lane {
  readonly name: string
  seq: number
}

interface Tie {
  readonly lane: Lane
  readonly sinceMs: number
}

/** Answered flushes are repeated only by who lost the answer on this side: soon, or never. */
const MOST_ANSWERED = 1_000

export class Lanes {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #producer: string
  readonly #free: Lane[] = []
  readonly #underWay = new Map<FlushId, Promise<FlushAnswers>>()
  readonly #answered = new Map<FlushId, FlushAnswers>()
  /** Flushes without an answer; their lanes carry nothing else. */
  readonly #tied = new Map<FlushId, Tie>()
  #lanes = 0

  constructor(clock: Pick<Clock, 'monotonicMs'>, random: Random) {
    this.#clock = clock
    this.#producer = random.uint32().toString(36) + random.uint32().toString(36)
  }

  once(id: FlushId, send: (lane: string, seq: number) => Promise<FlushAnswers>): Promise<FlushAnswers> {
    const answered = this.#answered.get(id)
    if (answered !== undefined) return Promise.resolve(answered)
    const underWay = this.#underWay.get(id)
    if (underWay !== undefined) return underWay
    const sent = this.#send(id, send).finally(() => this.#underWay.delete(id))
    this.#underWay.set(id, sent)
    return sent
  }

  async #send(
    id: FlushId,
    send: (lane: string, seq: number) => Promise<FlushAnswers>,
  ): Promise<FlushAnswers> {
    const lane = this.#laneFor(id)
    try {
      const answers = await send(lane.name, lane.seq)
      this.#remember(id, answers)
      this.#untie(id)
      return answers
    } catch (error) {
      if (isRefusal(error)) this.#untie(id)
      throw error
    }
  }

  #laneFor(id: FlushId): Lane {
    const tie = this.#tied.get(id)
    if (tie !== undefined) return tie.lane
    this.#forgetOldTies()
    const lane = this.#free.pop() ?? { name: `${this.#producer}:${this.#lanes++}`, seq: 0 }
    lane.seq++
    this.#tied.set(id, { lane, sinceMs: this.#clock.monotonicMs() })
    return lane
  }

  #untie(id: FlushId): void {
    const tie = this.#tied.get(id)
    if (tie === undefined) return
    this.#tied.delete(id)
    this.#free.push(tie.lane)
  }

  /** Nobody repeats them any more. Should they still arrive, the number of their lane is lower than the newest. */
  #forgetOldTies(): void {
    const tooOld = this.#clock.monotonicMs() - FLUSH_MEMORY_MS
    for (const [id, { sinceMs }] of this.#tied) {
      if (sinceMs > tooOld) return
      if (!this.#underWay.has(id)) this.#untie(id)
    }
  }

  #remember(id: FlushId, answers: FlushAnswers): void {
    this.#answered.set(id, answers)
    if (this.#answered.size <= MOST_ANSWERED) return
    const [oldest] = this.#answered.keys()
    if (oldest !== undefined) this.#answered.delete(oldest)
  }
}

/** The server said no: nothing was written. */
function isRefusal(error: unknown): boolean {
  if (error instanceof HoldfastError)
    return error.code !== 'HF_STORE_UNREACHABLE' && error.code !== 'HF_CLOSED'
  return isReply(error)
}
