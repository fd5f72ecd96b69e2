/**
 * Writes each flush once. A producer has several senders. A sender sends one flush at a time and numbers its flushes;
 * the server remembers the last number of each sender and its answer. A flush whose answer was lost keeps its sender
 * and number until it is repeated. So the server remembers as many flushes as a producer sends at once, not all that it
 * ever sent.
 */
import { HoldfastError } from '../../errors.ts'
import type { FlushId } from '../../job/ids.ts'
import type { Clock } from '../../std/clock.ts'
import type { Random } from '../../std/random.ts'
import { FLUSH_MEMORY_MS, type EnqueueAnswer } from '../store.ts'
import { isReply } from './server-errors.ts'

/** Null stands for "all inserted", which is nearly always. */
export type FlushAnswers = readonly EnqueueAnswer[] | null

interface Sender {
  readonly name: string
  seq: number
}

interface Tie {
  readonly sender: Sender
  readonly sinceMs: number
}

/** An answered flush is repeated only if this process lost the answer, and then soon. */
const MOST_ANSWERED = 1_000

export class Senders {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #producer: string
  readonly #free: Sender[] = []
  readonly #underWay = new Map<FlushId, Promise<FlushAnswers>>()
  readonly #answered = new Map<FlushId, FlushAnswers>()
  /** Flushes without an answer; their senders send nothing else. */
  readonly #tied = new Map<FlushId, Tie>()
  #senders = 0

  constructor(clock: Pick<Clock, 'monotonicMs'>, random: Random) {
    this.#clock = clock
    this.#producer = random.uint32().toString(36) + random.uint32().toString(36)
  }

  once(id: FlushId, send: (sender: string, seq: number) => Promise<FlushAnswers>): Promise<FlushAnswers> {
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
    send: (sender: string, seq: number) => Promise<FlushAnswers>,
  ): Promise<FlushAnswers> {
    const sender = this.#senderFor(id)
    try {
      const answers = await send(sender.name, sender.seq)
      this.#remember(id, answers)
      this.#untie(id)
      return answers
    } catch (error) {
      if (isRefusal(error)) this.#untie(id)
      throw error
    }
  }

  #senderFor(id: FlushId): Sender {
    const tie = this.#tied.get(id)
    if (tie !== undefined) return tie.sender
    this.#forgetOldTies()
    const sender = this.#free.pop() ?? { name: `${this.#producer}:${this.#senders++}`, seq: 0 }
    sender.seq++
    this.#tied.set(id, { sender, sinceMs: this.#clock.monotonicMs() })
    return sender
  }

  #untie(id: FlushId): void {
    const tie = this.#tied.get(id)
    if (tie === undefined) return
    this.#tied.delete(id)
    this.#free.push(tie.sender)
  }

  /**
   * Frees senders whose flush is too old to be repeated. If it still arrives, its number is lower than the sender's
   * last.
   */
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

/** Whether the server refused the flush, so that nothing was written. */
function isRefusal(error: unknown): boolean {
  if (error instanceof HoldfastError)
    return error.code !== 'HF_STORE_UNREACHABLE' && error.code !== 'HF_CLOSED'
  return isReply(error)
}
