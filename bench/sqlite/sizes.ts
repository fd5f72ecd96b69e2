import {
  COMMON_FULL,
  COMMON_QUICK,
  type CommonSizes,
  type HistorySizes,
  type OneSlotSizes,
} from '../contest/sizes.ts'

export interface SqliteSizes extends CommonSizes, HistorySizes, OneSlotSizes {
  /** Enqueued one by one. */
  readonly oneByOne: number
  /** With a slow disk: one by one, and 50 at once. */
  readonly slow1: number
  readonly slow50: number
  /** Without work, by one process and by four. */
  readonly noop: number
  /** After which memory and disk are looked at. */
  readonly lifetime: number
}

export const FULL: SqliteSizes = {
  ...COMMON_FULL,
  bulk: 100_000,
  single: { holdfast: 50_000, peer: 50_000 },
  drain: 100_000,
  history1k: 50_000,
  history8k: 20_000,
  slot1: 10_000,
  idleSeconds: 15,
  waiting5ms: 20_000,
  oneByOne: 3_000,
  slow1: 300,
  slow50: 10_000,
  noop: 100_000,
  lifetime: 100_000,
}

export const QUICK: SqliteSizes = {
  ...COMMON_QUICK,
  single: { holdfast: 5_000, peer: 5_000 },
  history1k: 5_000,
  history8k: 2_000,
  slot1: 2_000,
  oneByOne: 300,
  slow1: 50,
  slow50: 1_000,
  noop: 20_000,
  lifetime: 10_000,
}
