/** In the order they run within a round. */
import { waiting } from '../../contest/scenarios/backlog.ts'
import { idle, latency } from '../../contest/scenarios/idle.ts'
import { oneSlot } from '../../contest/scenarios/one-slot.ts'
import {
  bulk,
  drainOne,
  drainTwo,
  history,
  payload8k,
  single,
  waitingHandlers,
} from '../../contest/scenarios/throughput.ts'
import { memory } from './memory.ts'
import type { RedisScenario } from './scenario.ts'

export const SCENARIOS: readonly RedisScenario[] = [
  bulk,
  single,
  drainOne,
  oneSlot,
  history,
  drainTwo,
  payload8k,
  latency,
  idle,
  waitingHandlers,
  waiting,
  memory,
]
