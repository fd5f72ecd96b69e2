import type { WantedSizes } from '../contest/contest.ts'
import { COMMON_FULL, COMMON_QUICK, type CommonSizes, type HistorySizes } from '../contest/sizes.ts'

export interface PostgresSizes extends CommonSizes, HistorySizes {
  readonly payload1k: number
  readonly scheduled: number
  readonly oldTransaction: number
  /** How long a load lasts on a fresh server. */
  readonly loadSeconds: number
  /** Jobs that have gone through a server that is fresh no more. */
  readonly used: number
  /** How long a transaction stays open while jobs go on. */
  readonly pressureSeconds: number
  /** And how long they go on after it. */
  readonly recoverySeconds: number
}

const FULL: PostgresSizes = {
  ...COMMON_FULL,
  single: { holdfast: 100_000, peer: 5_000 },
  payload1k: 100_000,
  scheduled: 1_000_000,
  oldTransaction: 1_000_000,
  history1k: 200_000,
  history8k: 60_000,
  loadSeconds: 60,
  used: 1_000_000,
  pressureSeconds: 600,
  recoverySeconds: 60,
}

const QUICK: PostgresSizes = {
  ...COMMON_QUICK,
  single: { holdfast: 10_000, peer: 500 },
  payload1k: 5_000,
  scheduled: 20_000,
  oldTransaction: 50_000,
  history1k: 10_000,
  history8k: 3_000,
  loadSeconds: 6,
  used: 50_000,
  pressureSeconds: 12,
  recoverySeconds: 10,
}

export function sizesOf({ quick, seconds, minutes }: WantedSizes): PostgresSizes {
  const sizes = quick ? QUICK : FULL
  return {
    ...sizes,
    loadSeconds: seconds ?? sizes.loadSeconds,
    pressureSeconds: minutes === undefined ? sizes.pressureSeconds : minutes * 60,
  }
}
