/** The one shape of all rules. A rule sees the events it asked for, in order, before the world takes them in. */
import type { HistoryEvent } from './history.ts'
import type { RuleName } from './violation.ts'
import type { World } from './world.ts'

export interface Rule {
  readonly name: RuleName
  readonly sees: readonly HistoryEvent['type'][]
  on(event: HistoryEvent): void
  end(): void
}

export type RuleClass = new (world: World) => Rule
