/** In the order they run within a round. */
import { waiting } from '../../contest/scenarios/backlog.ts'
import { idle, latency } from '../../contest/scenarios/idle.ts'
import {
  bulk,
  drainOne,
  drainTwo,
  history,
  history1k,
  history8k,
  payload8k,
  single,
  waitingHandlers,
} from '../../contest/scenarios/throughput.ts'
import { scheduled } from './backlog.ts'
import { FRESH, steady } from './fresh.ts'
import { oldTransaction } from './old-transaction.ts'
import { PRESSURE } from './pressure.ts'
import type { PostgresScenario } from './scenario.ts'
import { historyTwo, payload1k } from './throughput.ts'

export const SCENARIOS: readonly PostgresScenario[] = [
  bulk,
  single,
  drainOne,
  // pg-boss always keeps what is completed, graphile-worker never does, BullMQ does as we do.
  history,
  drainTwo,
  historyTwo,
  history1k,
  history8k,
  payload1k,
  payload8k,
  latency,
  idle,
  waitingHandlers,
  waiting,
  scheduled,
  ...FRESH,
  steady,
  oldTransaction,
  ...PRESSURE,
]
