/**
 * Cancelling a job, so that no handler starts it afterwards. A waiting job is cancelled by the store. One that a worker
 * has claimed may be running, or not started yet: the workers of this process are asked directly, others hear of it
 * through the store and settle the job or report that the cancel took effect. `START_WITHIN_MS` after the store has
 * written the cancel no worker starts the job anyway, so that is how long their word is waited for; longer if a worker
 * has said that the store answers it slowly.
 */
import { HoldfastError } from '../errors.ts'
import type { JobId } from '../job/ids.ts'
import { sleep } from '../std/clock.ts'
import { changeOne } from '../stores/changes.ts'
import { LONGEST_START_MS, SLOW_WORKER, START_WITHIN_MS, type ChangeOutcome } from '../stores/store.ts'
import type { Core } from '../core/core.ts'

/**
 * `cancelled`: it never runs again. `requested`: it is running, and its signal fires; it is cancelled once its handler
 * gives in, and completed if it completes before that. `too_late`: it had completed, failed for good or been cancelled.
 */
export type CancelResult = 'cancelled' | 'requested' | 'too_late'

type CancelAnswer = ChangeOutcome | 'missing'

/** Some more, for clocks that do not run alike. */
const MARGIN_MS = 200
const FIRST_LOOK_MS = 2
const LONGEST_LOOK_MS = 50

export async function cancelJob(
  core: Core,
  id: JobId,
  reason: string | null,
): Promise<CancelResult | 'missing'> {
  let tries = 0
  const ask = (): Promise<CancelAnswer> =>
    core.connection.persist(`cancel job ${id}`, (store) => {
      tries++
      return changeOne(store, id, { type: 'cancel', reason })
    })
  const answer = await ask()
  switch (answer) {
    case 'cancelled':
    case 'missing':
      return answer
    case 'final':
      // The answer to an earlier try may have been lost.
      return tries > 1 ? endOf(core, id) : 'too_late'
    case 'requested':
    case 'heard': {
      const here = core.localWorkers.cancelled(id, reason)
      if (here === 'running' || answer === 'heard') return 'requested'
      const ended = await untilHeard(core, ask)
      if (ended === 'final') return endOf(core, id)
      // It was not there any more: nothing is kept of jobs that end.
      if (ended === 'missing') return here === 'dropped' ? 'cancelled' : 'too_late'
      return here === 'dropped' ? 'cancelled' : 'requested'
    }
    default:
      throw brokenAnswer(answer)
  }
}

/** Until the job is settled or its worker has reported the cancel; null if neither happened and no worker starts it any more. */
async function untilHeard(core: Core, ask: () => Promise<CancelAnswer>): Promise<CancelAnswer | null> {
  const { clock, connection } = core
  const begunMs = clock.monotonicMs()
  let waitMs = START_WITHIN_MS
  let isLongest = false
  for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_LOOK_MS)) {
    const leftMs = begunMs + waitMs + MARGIN_MS - clock.monotonicMs()
    if (leftMs <= 0) {
      if (isLongest) return null
      isLongest = true
      waitMs = await longestStartMs(core)
      continue
    }
    // Cut short by a close, which the next call then tells.
    await sleep(clock, Math.min(pauseMs, leftMs), connection.closing).catch(() => undefined)
    try {
      const answer = await ask()
      if (answer !== 'requested') return answer
    } catch (error) {
      // The cancel is written. If the store cannot be asked any more, the time that workers have has to pass.
      if (connection.closing.aborted) throw error
    }
  }
}

/** How long any worker takes to start a job: some say that they are slow. */
async function longestStartMs({ connection }: Core): Promise<number> {
  try {
    const notes = await connection.call('find slow workers', (store) => store.notes.list(SLOW_WORKER))
    const toldMs = notes.map(({ text }) => Number(text)).filter((ms) => ms <= LONGEST_START_MS)
    return Math.max(START_WITHIN_MS, ...toldMs)
  } catch {
    return LONGEST_START_MS
  }
}

function brokenAnswer(answer: CancelAnswer): HoldfastError {
  return new HoldfastError('HF_STORE_CONTRACT', `The store answered "${answer}" to a cancel.`)
}

/** What became of a job that ended while its cancel was under way. */
async function endOf({ connection }: Core, id: JobId): Promise<CancelResult> {
  const record = await connection.persist(`read job ${id}`, (store) => store.admin.get(id))
  return record?.state === 'cancelled' ? 'cancelled' : 'too_late'
}
