import type { CommonFigure, Figures } from '../figures.ts'
import type { ContestServer } from '../server.ts'
import type { CommonSizes } from '../sizes.ts'
import type { Stage } from '../stage.ts'

/** By default one that every store can run. */
export interface Scenario<
  Figure extends string = CommonFigure,
  Server extends ContestServer = ContestServer,
  Sizes extends CommonSizes = CommonSizes,
> {
  /** For `--only`. */
  readonly name: string
  /** Name for several scenarios in `--only`. */
  readonly group?: string
  /** Whether the peers and Holdfast in another set-up run it, too, or which of them; else it compares Holdfast with itself. */
  readonly peers: boolean | readonly string[]
  /** Takes so long that it runs only if `--only` names it. */
  readonly onRequest?: boolean
  /** Where further rounds would tell little and take long. */
  readonly maxRounds?: number
  run(stage: Stage<Server, Sizes>): Promise<Figures<Figure>>
}
