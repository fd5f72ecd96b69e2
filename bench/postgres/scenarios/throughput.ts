import { filledAndDrained } from '../../contest/scenarios/throughput.ts'
import type { PostgresScenario } from './scenario.ts'

const KEPT = { config: { history: true } } as const

export const historyTwo: PostgresScenario = {
  name: 'history2',
  peers: true,
  run: (stage) => filledAndDrained('history2', stage, stage.sizes.drain, { ...KEPT, processes: 2 }),
}

export const payload1k: PostgresScenario = {
  name: 'payload1k',
  peers: true,
  run: (stage) => filledAndDrained('payload1k', stage, stage.sizes.payload1k, { bytes: 1_024 }),
}
