/** All rules, in the order in which they are told of. */
import type { MakeRule } from '../rule.ts'
import { rescue } from './l1-rescue.ts'
import { reclaim } from './l2-reclaim.ts'
import { starvation } from './l3-starve.ts'
import { drain } from './l4-drain.ts'
import { nothingLost } from './s01-nothing-lost.ts'
import { nothingInvented } from './s02-nothing-invented.ts'
import { oneLease } from './s03-one-lease.ts'
import { fence } from './s04-fence.ts'
import { growth } from './s05-growth.ts'
import { finalIsFinal } from './s06-final.ts'
import { uniqueKeys } from './s07-unique.ts'
import { legalMoves } from './s11-moves.ts'
import { payloads } from './s12-payload.ts'
import { flushes } from './s14-flush.ts'
import { counters } from './s15-counters.ts'
import { pauseAndCancel } from './s16-pause-cancel.ts'
import { order } from './s17-order.ts'
import { wellFormed } from './well-formed.ts'

export const ALL_RULES: readonly MakeRule[] = [
  wellFormed,
  nothingLost,
  nothingInvented,
  oneLease,
  fence,
  growth,
  finalIsFinal,
  uniqueKeys,
  legalMoves,
  payloads,
  flushes,
  counters,
  pauseAndCancel,
  order,
  rescue,
  reclaim,
  starvation,
  drain,
]
