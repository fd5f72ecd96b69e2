/** What a store is tested through: the store itself, and the means that only a test has. */
import type { Store } from '../store.ts'

export interface StoreUnderTest {
  readonly store: Store
  /** Moves the store's clock on, or back if `ms` is negative. */
  advance(ms: number): Promise<void>
  close(): Promise<void>
}
