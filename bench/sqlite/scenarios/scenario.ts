import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Scenario } from '../../contest/scenarios/scenario.ts'
import type { SqliteFigure } from '../figures.ts'
import type { SqliteBenchServer } from '../server.ts'
import type { SqliteSizes } from '../sizes.ts'

export type SqliteScenario = Scenario<SqliteFigure, SqliteBenchServer, SqliteSizes>

/** Without figures where only one process can open the store: in builds of before SQLite. */
export function acrossProcesses(scenario: SqliteScenario): SqliteScenario {
  return {
    ...scenario,
    async run(stage) {
      const { build } = stage
      const isShared = build === '' || existsSync(join(dirname(build), 'stores/sqlite'))
      return isShared ? scenario.run(stage) : {}
    },
  }
}
