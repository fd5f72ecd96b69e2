/**
 * Cancelling a job, so that no handler starts it afterwards. A waiting job is cancelled by the store. One that a worker
 * has claimed may be running, or not started yet: the workers of this process are asked directly, others hear of it
 * through the store and settle the job or report that the cancel took effect. `START_WITHIN_MS` after the store has
 * written the cancel no worker starts the job anyway, so that is how long their word is waited for; longer if a worker
 * has said that the store answers it slowly.
 */
import { HoldfastError, isStoreFailure } from '../errors.ts'
import type { JobId } from '../job/ids.ts'
import { nextPause, type Backoff } from '../std/backoff.ts'
import { sleep } from '../std/clock.ts'
import type { Deadline } from '../std/deadline.ts'
import type { Core } from '../core/core.ts'
import type { ChangedOne } from '../core/store-client.ts'
import { LONGEST_START_MS, START_WITHIN_MS } from '../stores/store.ts'

/**
 * `cancelled`: it never runs again. `requested`: it is running, and its signal aborts; it is cancelled once its handler
 * returns, and completed if it completes before that. `too_late`: it had completed, failed for good or been cancelled.
 */
export type CancelResult = 'cancelled' | 'requested' | 'too_late'

/** A margin for clocks that run at different speeds. */
const MARGIN_MS = 200
const LOOKS: Backoff = { firstMs: 2, longestMs: 50 }

export async function cancelJob(
  core: Core,
  id: JobId,
  reason: string | null,
): Promise<CancelResult | 'missing'> {
  const { clock, store } = core
  const deadline = store.deadline()
  const answer = await store.cancel(id, reason, deadline)
  switch (answer) {
    case 'cancelled':
    case 'missing':
      return answer
    case 'final':
      return 'too_late'
    case 'requested':
    case 'heard': {
      const here = core.localWorkers.cancelled(id, reason)
      if (here === 'running' || answer === 'heard') return 'requested'
      const askedMs = clock.monotonicMs()
      const ended = await untilHeard(core, id, reason)
      // The time in which the worker had its say is not the store's.
      const atMs = deadline.atMs + clock.monotonicMs() - askedMs
      if (ended === 'final') return endOf(core, id, { ...deadline, atMs })
      // It was not there any more: nothing is kept of jobs that end.
      if (ended === 'missing') return here === 'dropped' ? 'cancelled' : 'too_late'
      return here === 'dropped' ? 'cancelled' : 'requested'
    }
    default:
      throw brokenAnswer(answer)
  }
}

/** Asks until the job is settled or its worker has reported the cancel; null if no worker starts the job any more. */
async function untilHeard(core: Core, id: JobId, reason: string | null): Promise<ChangedOne | null> {
  const { clock, connection, store } = core
  const begunMs = clock.monotonicMs()
  let waitMs = START_WITHIN_MS
  let isLongest = false
  for (let pauseMs = LOOKS.firstMs; ; pauseMs = nextPause(LOOKS, pauseMs)) {
    const leftMs = begunMs + waitMs + MARGIN_MS - clock.monotonicMs()
    if (leftMs <= 0) {
      if (isLongest) return null
      isLongest = true
      const withinMs = begunMs + LONGEST_START_MS + MARGIN_MS - clock.monotonicMs()
      waitMs = await longestStartMs(core, withinMs)
      continue
    }
    // A close cuts this short; the next call then says so.
    await sleep(clock, Math.min(pauseMs, leftMs), connection.closing).catch(() => undefined)
    try {
      const answer = await store.askCancel(id, reason, leftMs)
      if (answer !== 'requested') return answer
    } catch (error) {
      // The cancel is written. If the store cannot be asked any more, the time that workers have has to pass.
      if (connection.closing.aborted || !isStoreFailure(error)) throw error
    }
  }
}

/** How long any worker takes to start a job: some say that they are slow. */
async function longestStartMs({ store }: Core, withinMs: number): Promise<number> {
  try {
    const notes = await store.slowWorkers(withinMs)
    const toldMs = notes.map(({ text }) => Number(text)).filter((ms) => ms <= LONGEST_START_MS)
    return Math.max(START_WITHIN_MS, ...toldMs)
  } catch (error) {
    if (!isStoreFailure(error)) throw error
    return LONGEST_START_MS
  }
}

function brokenAnswer(answer: ChangedOne): HoldfastError {
  return new HoldfastError('HF_STORE_CONTRACT', `The store answered "${answer}" to a cancel.`)
}

/** What became of a job that ended while its cancel was under way. */
async function endOf({ store }: Core, id: JobId, deadline: Deadline): Promise<CancelResult> {
  const record = await store.job(id, deadline)
  return record?.state === 'cancelled' ? 'cancelled' : 'too_late'
}
