import { filledAndDrained } from '../../contest/scenarios/throughput.ts'
import type { PostgresScenario } from './scenario.ts'

const KEPT = { config: { history: true } } as const

export const historyTwo: PostgresScenario = {
  name: 'history2',
  peers: true,
  run: (stage) => filledAndDrained('history2', stage, stage.sizes.drain, { ...KEPT, processes: 2 }),
}

export const history1k: PostgresScenario = {
  name: 'history1k',
  peers: true,
  run: (stage) => filledAndDrained('history1k', stage, stage.sizes.history1k, { ...KEPT, bytes: 1_024 }),
}

export const history8k: PostgresScenario = {
  name: 'history8k',
  peers: true,
  run: (stage) => filledAndDrained('history8k', stage, stage.sizes.history8k, { ...KEPT, bytes: 8_192 }),
}

export const payload1k: PostgresScenario = {
  name: 'payload1k',
  peers: true,
  run: (stage) => filledAndDrained('payload1k', stage, stage.sizes.payload1k, { bytes: 1_024 }),
}
