/** In the order they run within a round. */
import { idle, latency } from '../../contest/scenarios/idle.ts'
import { oneSlot } from '../../contest/scenarios/one-slot.ts'
import { bulk, drainOne, history, history1k, history8k, single } from '../../contest/scenarios/throughput.ts'
import { bulk1k, oneByOne, slowDisk } from './enqueue.ts'
import { first } from './first.ts'
import { noop, waitingHandlers } from './processes.ts'
import { acrossProcesses, type SqliteScenario } from './scenario.ts'

export const SCENARIOS: readonly SqliteScenario[] = [
  first,
  bulk,
  bulk1k,
  oneByOne,
  single,
  slowDisk,
  drainOne,
  history,
  history1k,
  history8k,
  oneSlot,
  acrossProcesses(latency),
  idle,
  acrossProcesses(waitingHandlers),
  acrossProcesses(noop),
]
