/** A message in a caller's hands: what it shows of the job, and how the caller settles it. */
import { RetryIn } from '../errors.ts'
import type { JobInfo } from '../job/context.ts'
import { duration } from '../job/duration.ts'
import { classify } from '../job/failure.ts'
import { readersFor, readOptions } from '../job/options.ts'
import { encodeResult } from '../job/payload.ts'
import type { Outcome } from '../job/settlement.ts'
import type { Duration } from '../std/duration.ts'
import { toError } from '../std/text.ts'
import type { Attempt } from '../worker/attempt.ts'
import { jobInfo } from '../worker/context.ts'

/** A message that the caller holds. If it is neither acked nor nacked, it fails at its timeout. */
export interface Message {
  readonly id: string
  readonly name: string
  readonly payload: unknown
  readonly job: JobInfo
  /** Fires when the message is no longer the caller's: timeout, cancelled, lease_lost or shutdown. */
  readonly signal: AbortSignal
  readonly fence: bigint
  /**
   * Completes the message. Rejects with HF_LEASE_LOST if the message is no longer the caller's, with HF_STORE_UNREACHABLE
   * if the ack could not be written, and with HF_STORE_REFUSED if the store cannot hold the result. After the last two
   * the caller still holds the message and can ack or nack it again.
   */
  ack(result?: unknown): Promise<void>
  /** Fails the message: it is retried by its policy, or after `retryIn`, until its attempts are used up. */
  nack(error?: unknown, options?: NackOptions): Promise<void>
}

export interface NackOptions {
  /** @default what the message's policy says */
  readonly retryIn?: Duration
}

const NACK_FIELDS = readersFor<NackOptions>()({ retryIn: duration({ orZero: true }) })

/** Once per attempt: clears the payload. */
export function messageOf(
  attempt: Attempt,
  settle: (attempt: Attempt, outcome: Outcome) => Promise<void>,
): Message {
  const { job } = attempt
  const payload = JSON.parse(job.payload) as unknown
  job.payload = ''
  return {
    id: job.id,
    name: job.name,
    payload,
    job: jobInfo(attempt),
    get signal() {
      return attempt.abort.signal
    },
    fence: BigInt(attempt.token),
    ack: async (result) => {
      const { json, dropped } = encodeResult(result)
      await settle(attempt, { type: 'succeeded', result: json, resultDropped: dropped })
    },
    nack: async (error, options = {}) => {
      const { retryIn } = readOptions(options, 'nack()', NACK_FIELDS)
      const cause = error === undefined ? new Error('The message was refused.') : error
      const thrown = retryIn === undefined ? cause : new RetryIn(retryIn, toError(cause).message, { cause })
      await settle(attempt, { type: 'failed', thrown, kind: classify(thrown) })
    },
  }
}
