/** All rules, in the order in which they are told of. */
import type { RuleClass } from '../rule.ts'
import { Rescue } from './l1-rescue.ts'
import { UndeliveredLeases } from './l1-undelivered.ts'
import { Reclaim } from './l2-reclaim.ts'
import { Starvation } from './l3-starve.ts'
import { Drain } from './l4-drain.ts'
import { NothingLost } from './s01-nothing-lost.ts'
import { NothingInvented } from './s02-nothing-invented.ts'
import { OneLease } from './s03-one-lease.ts'
import { Fence } from './s04-fence.ts'
import { Growth } from './s05-growth.ts'
import { FinalIsFinal } from './s06-final.ts'
import { UniqueKeys } from './s07-unique.ts'
import { Ticks } from './s08-ticks.ts'
import { LegalMoves } from './s11-moves.ts'
import { Payloads } from './s12-payload.ts'
import { Flushes } from './s14-flush.ts'
import { Counters } from './s15-counters.ts'
import { PauseAndCancel } from './s16-pause-cancel.ts'
import { Order } from './s17-order.ts'
import { Suspects } from './s18-suspects.ts'
import { WellFormed } from './well-formed.ts'

export const ALL_RULES: readonly RuleClass[] = [
  WellFormed,
  NothingLost,
  NothingInvented,
  OneLease,
  Fence,
  Growth,
  FinalIsFinal,
  UniqueKeys,
  Ticks,
  LegalMoves,
  Payloads,
  Flushes,
  Counters,
  PauseAndCancel,
  Order,
  Suspects,
  Rescue,
  UndeliveredLeases,
  Reclaim,
  Starvation,
  Drain,
]
