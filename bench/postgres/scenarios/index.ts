/** In the order they run within a round. */
import { waiting } from '../../contest/scenarios/backlog.ts'
import { idle, latency } from '../../contest/scenarios/idle.ts'
import {
  bulk,
  drainOne,
  drainTwo,
  history,
  payload8k,
  single,
  waitingHandlers,
} from '../../contest/scenarios/throughput.ts'
import { scheduled } from './backlog.ts'
import { embedded, embeddedMemory } from './embedded.ts'
import { oldTransaction } from './old-transaction.ts'
import type { PostgresScenario } from './scenario.ts'
import { historyTwo, payload1k } from './throughput.ts'

export const SCENARIOS: readonly PostgresScenario[] = [
  bulk,
  single,
  drainOne,
  // pg-boss always keeps what is completed, graphile-worker never does: their figures are those of the drain.
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
