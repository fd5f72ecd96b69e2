/**
 * Mutants of the worker that the simulation cannot notice, because the store's fence or a later poll makes up for them. Each
 * names the tests that do.
 */
import type { Planted } from '../../simulation/mutants/mutants.ts'

export interface WorkerMutant extends Planted {
  /** The file of tests that notice it. */
  readonly caughtBy: string
}

const PLAN = 'src/worker/plan.ts'
const ATTEMPTS = 'src/worker/attempts.ts'

export const WORKER_MUTANTS: readonly WorkerMutant[] = [
  {
    name: 'an older empty answer overtakes a wake-up',
    from: 'the claim was answered empty, the job came, its wake-up was heard first; the job waits for the next poll',
    file: PLAN,
    find: 'if (taken < request.limit && queue.wakeUps === wakeUpsBefore) queue.dry = true',
    replace: 'void wakeUpsBefore\n  if (taken < request.limit) queue.dry = true',
    caughtBy: 'src/worker/plan.test.ts',
  },
  {
    name: 'what cannot start is never given back',
    from: 'hoarding: a claimed job waits behind a long one while other workers are idle',
    file: PLAN,
    find: '  return (oldestMs !== undefined && oldestMs <= staleMs) ||',
    replace: '  return (oldestMs !== undefined && oldestMs <= staleMs && nowMs < 0) ||',
    caughtBy: 'src/worker/plan.test.ts',
  },
  {
    name: 'a lost lease is written all the same',
    from: 'the outcome of a handler that returns after its lease was lost',
    file: ATTEMPTS,
    find: "    if (attempt.phase === 'settled' || attempt.phase === 'lost') return null\n",
    replace: "    if (attempt.phase === 'settled') return null\n",
    and: {
      file: 'src/worker/execute.ts',
      find: "return attempt.phase === 'lost' ? null : outcome",
      replace: 'return outcome',
    },
    caughtBy: 'src/worker/lease.test.ts',
  },
  {
    name: 'a handler that ignores its abort keeps its job',
    from: 'a stuck handler blocks its job for ever',
    file: ATTEMPTS,
    find: '    if (attempt.abortedFor !== undefined) this.giveUp(attempt)\n    else this.stop',
    replace: '    if (attempt.abortedFor === undefined) this.stop',
    caughtBy: 'src/worker/cancel.test.ts',
  },
  {
    name: 'a job starts however long ago the store was asked about it',
    from: 'a cancel or a pause that was answered does not hold',
    file: 'src/worker/starts.ts',
    find: '    if (!session.mayStart(askedMs, nowMs)) return false\n',
    replace: '    void askedMs\n',
    caughtBy: 'src/worker/starts.test.ts',
  },
  {
    name: 'what was handed over and has arrived is not told',
    from: 'the next claim releases a job that runs',
    file: 'src/worker/offers.ts',
    find: 'received: this.#received }',
    replace: 'received: [] }',
    caughtBy: 'src/worker/hand-over.test.ts',
  },
  {
    name: 'a lease that was handed over counts as asked for when it arrives',
    from: 'a process that was frozen starts a job that was cancelled meanwhile',
    file: 'src/worker/offers.ts',
    find: 'askedMs: sentMs + Math.max(0, lease.claimedAt - offeredAt)',
    replace: 'askedMs: sentMs + 1e12',
    caughtBy: 'src/worker/hand-over.test.ts',
  },
  {
    name: 'a stopping worker leaves its offer open',
    from: 'what is handed over to it meanwhile is rescued as if it had crashed',
    file: PLAN,
    find: 'const withdraws = offers && (!claims ||',
    replace: 'const withdraws = offers && (',
    caughtBy: 'src/worker/hand-over.test.ts',
  },
]
