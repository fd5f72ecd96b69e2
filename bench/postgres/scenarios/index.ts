/** In the order they run within a round. */
import { scheduled, waiting } from './backlog.ts'
import { embedded, embeddedMemory } from './embedded.ts'
import { idle, latency } from './idle.ts'
import { oldTransaction } from './old-transaction.ts'
import type { Scenario } from './scenario.ts'
import {
  bulk,
  drainOne,
  drainTwo,
  history,
  historyTwo,
  payload1k,
  payload8k,
  single,
  waitingHandlers,
} from './throughput.ts'

export const SCENARIOS: readonly Scenario[] = [
  bulk,
  single,
  drainOne,
  history,
  drainTwo,
  historyTwo,
  payload1k,
  payload8k,
  latency,
  idle,
  waitingHandlers,
  waiting,
  scheduled,
  oldTransaction,
  embedded,
  embeddedMemory,
]
