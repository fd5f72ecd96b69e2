import type { Scenario } from '../../contest/scenarios/scenario.ts'
import type { Stage } from '../../contest/stage.ts'
import type { PostgresFigure } from '../figures.ts'
import type { PostgresBenchServer } from '../server.ts'
import type { PostgresSizes } from '../sizes.ts'

export type PostgresStage = Stage<PostgresBenchServer, PostgresSizes>
export type PostgresScenario = Scenario<PostgresFigure, PostgresBenchServer, PostgresSizes>
