import type { Figures } from '../figures.ts'
import type { Stage } from '../stage.ts'

export interface Scenario {
  /** For `--only`. */
  readonly name: string
  /** Whether the peers run it, too; else it compares Holdfast with itself. */
  readonly peers: boolean
  /** Where further rounds would tell little and take long. */
  readonly maxRounds?: number
  run(stage: Stage): Promise<Figures>
}
