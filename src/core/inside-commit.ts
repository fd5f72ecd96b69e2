/**
 * Whether the code that is running belongs to the transaction of a handler's `commit`. A call to the store from there that
 * does not go through the transaction needs a second connection, while the transaction keeps the first: a few handlers
 * that forget `{ tx }` would take the whole pool and wait for each other. So such calls are refused.
 *
 * Everything that `write` starts inherits this, including timers and promises that it leaves behind, until the
 * transaction ends. Work that Holdfast does later for others must not inherit it: see `outside`.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { HoldfastError } from '../errors.ts'

export class InsideCommit {
  readonly #scope = new AsyncLocalStorage<{ open: boolean } | undefined>()

  /** Runs `write` as the inside of a transaction, which ends with it. */
  async run<T>(write: () => Promise<T>): Promise<T> {
    const scope = { open: true }
    try {
      return await this.#scope.run(scope, write)
    } finally {
      scope.open = false
    }
  }

  /** Runs `work`, and everything that it starts, as if called from outside. */
  outside<T>(work: () => T): T {
    return this.#scope.getStore() === undefined ? work() : this.#scope.run(undefined, work)
  }

  /** `doing` completes "could not …". */
  refuse(doing: string): void {
    if (this.#scope.getStore()?.open !== true) return
    throw new HoldfastError(
      'HF_INSIDE_TRANSACTION',
      `Could not ${doing} inside commit() without its transaction.`,
    )
  }
}
