import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Scenario } from '../../contest/scenarios/scenario.ts'
import type { SqliteFigure } from '../figures.ts'
import type { SqliteBenchServer } from '../server.ts'
import type { SqliteSizes } from '../sizes.ts'

export type SqliteScenario = Scenario<SqliteFigure, SqliteBenchServer, SqliteSizes>

/** Without figures in builds whose embedded store is PGlite: only one process can open that. */
export function acrossProcesses(scenario: SqliteScenario): SqliteScenario {
  return {
    ...scenario,
    async run(stage) {
      const isAlone = existsSync(join(dirname(stage.build), 'stores/postgres/pglite'))
      return isAlone ? {} : scenario.run(stage)
    },
  }
}
