/** Mutants in the code around the SQL of the embedded store: its transactions, its queue of steps, and its thread. */
import type { WorkerMutant } from '../worker/mutants.ts'

const RUNNER = 'src/stores/sqlite/engine/runner.ts'
const RUNNER_TEST = 'src/stores/sqlite/engine/runner.test.ts'
const ENGINE = 'src/stores/sqlite/engine/engine.ts'
const STEPS = 'src/stores/sqlite/engine/steps.ts'
const QUEUE = 'src/stores/sqlite/step-queue.ts'
const QUEUE_TEST = 'src/stores/sqlite/step-queue.test.ts'
const TRANSACTIONS = 'src/stores/sqlite/caller/transactions.ts'
const TRANSACTIONS_TEST = 'src/stores/sqlite/caller/transactions.test.ts'
const CONNECTION = 'src/stores/sqlite/thread/connection.ts'
const SAME_FILE = 'src/stores/sqlite/files/same-file.ts'
const CONNECTION_TEST = 'src/stores/sqlite/thread/connection.test.ts'
const LINK = 'src/stores/sqlite/thread/link.ts'
const LINK_TEST = 'src/stores/sqlite/thread/link.test.ts'

export const SQLITE_CODE_MUTANTS: readonly WorkerMutant[] = [
  // ── transactions ───────────────────────────────────────────────────────────
  {
    name: 'a write begins without the write lock',
    from: 'a step goes on by what it read before another process wrote; SQLite then refuses its first write, however often it waits',
    file: RUNNER,
    find: "this.#attempt('begin immediate', () => {",
    replace: "this.#attempt('begin', () => {",
    caughtBy: RUNNER_TEST,
  },
  {
    name: 'a step fails with its neighbour',
    from: 'one enqueue with an id that exists fails all that share its transaction',
    file: RUNNER,
    find: 'if (group.length === 1 || isBusy(outcome.cause))',
    replace: 'if (group.length > 0 || isBusy(outcome.cause))',
    caughtBy: RUNNER_TEST,
  },
  {
    name: 'a transaction is committed without its counts',
    from: 'the dashboard shows jobs that are gone',
    file: RUNNER,
    find: '      engine.writeCounts()\n      return values',
    replace: '      return values',
    caughtBy: RUNNER_TEST,
  },
  {
    name: 'counts are kept after a rollback',
    from: 'jobs of a failed enqueue are counted with the next one',
    file: ENGINE,
    find: '    this.#counts.clear()\n    this.#hints = []\n',
    replace: '    this.#hints = []\n',
    caughtBy: RUNNER_TEST,
  },
  {
    name: 'hints are kept after a rollback',
    from: 'workers are woken for jobs that were never written',
    file: ENGINE,
    find: '    this.#counts.clear()\n    this.#hints = []\n',
    replace: '    this.#counts.clear()\n',
    caughtBy: RUNNER_TEST,
  },
  {
    name: 'a transaction that was left open is never ended',
    from: 'a rollback that failed: no call can begin until the process is restarted',
    file: RUNNER,
    find: '      rollBack(database)\n      database.exec(begin)\n',
    replace: '      throw error\n',
    caughtBy: RUNNER_TEST,
  },
  // ── steps that only look ───────────────────────────────────────────────────
  {
    name: 'the look for due jobs overlooks those that are due',
    from: 'scheduled jobs that never run',
    file: STEPS,
    find: 'return nextInMs === 0 ? undefined',
    replace: 'return nextInMs === -1 ? undefined',
    caughtBy: RUNNER_TEST,
  },
  {
    name: 'an idle worker loses its reports',
    from: 'progress and log lines that come with an empty claim',
    file: 'src/stores/sqlite/engine/claim.ts',
    find: 'if (settle.length + reports.length > 0) return undefined',
    replace: 'void reports\n  if (settle.length > 0) return undefined',
    caughtBy: RUNNER_TEST,
  },
  // ── transactions of the caller's ───────────────────────────────────────────
  {
    name: "a step that fails leaves its half in the caller's transaction",
    from: 'half a flush is committed with what the caller wrote',
    file: TRANSACTIONS,
    find: "database.exec('rollback to holdfast_step; release holdfast_step')",
    replace: "database.exec('release holdfast_step')",
    caughtBy: TRANSACTIONS_TEST,
  },
  {
    name: 'the effect is committed before the settle',
    from: 'the effect of a handler whose lease was lost happens twice',
    file: TRANSACTIONS,
    find: '        settleIn(engine, connection, request, settlement)\n',
    replace:
      "        database.exec('commit; begin immediate')\n        settleIn(engine, connection, request, settlement)\n",
    caughtBy: TRANSACTIONS_TEST,
  },
  // ── the queue of steps ─────────────────────────────────────────────────────
  {
    name: 'a step does not wait for the write lock',
    from: 'every call fails that meets the transaction of another process',
    file: QUEUE,
    find: 'if (nowMs < call.busySinceMs + LOCK_MS) return false',
    replace: 'if (nowMs < call.busySinceMs) return false',
    caughtBy: QUEUE_TEST,
  },
  {
    name: 'a step waits for the write lock for ever',
    from: 'a process that was stopped while it wrote: callers time out and nobody is named',
    file: QUEUE,
    find: 'if (nowMs < call.busySinceMs + LOCK_MS) return false',
    replace: 'if (nowMs < Infinity) return false',
    caughtBy: QUEUE_TEST,
  },
  {
    name: 'bulk changes share a transaction',
    from: 'ten parallel replays hold the write lock for 10,000 jobs',
    file: RUNNER,
    find: '  change: ([, , limit]) => limit,\n',
    replace: '',
    caughtBy: QUEUE_TEST,
  },
  // ── the thread ─────────────────────────────────────────────────────────────
  {
    name: 'a connection is used on after an I/O error',
    from: 'nobody knows what state it is in',
    file: CONNECTION,
    find: 'if (hasIoError(ran)) this.#giveUp()',
    replace: 'if (hasIoError(ran) && calls.length === 0) this.#giveUp()',
    caughtBy: CONNECTION_TEST,
  },
  {
    name: 'a deleted database goes on taking jobs',
    from: '`rm -rf .holdfast` beside a running process: enqueues are acknowledged into a file without a name',
    file: SAME_FILE,
    find: 'return dev === before.dev && ino === before.ino',
    replace: 'return dev === before.dev || ino === before.ino',
    and: {
      file: SAME_FILE,
      find: "return (error as { readonly code?: unknown }).code !== 'ENOENT'",
      replace: "return (error as { readonly code?: unknown }).code !== 'EIO'",
    },
    caughtBy: CONNECTION_TEST,
  },
  {
    name: 'a new thread does not know who listens',
    from: 'after the thread has died, wake-ups of other processes are off for good',
    file: LINK,
    find: 'if (this.#listens) thread.postMessage',
    replace: 'if (this.#listens && thread.threadId < 0) thread.postMessage',
    caughtBy: LINK_TEST,
  },
  {
    name: 'the end of an old thread ends the new one',
    from: 'an opening that failed and was repeated at once: a second thread, and calls that fail',
    file: LINK,
    find: '    if (this.#live === live) {\n',
    replace: '    if (this.#live !== undefined) {\n',
    caughtBy: LINK_TEST,
  },
]
