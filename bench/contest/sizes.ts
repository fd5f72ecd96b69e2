/** How much of everything that is measured on each store: enough to be sure of, or just enough to see that it works. */
export interface CommonSizes {
  readonly bulk: number
  /** Where one by one is slow with the peers, they get fewer. */
  readonly single: { readonly holdfast: number; readonly peer: number }
  readonly drain: number
  readonly payload8k: number
  readonly latencySamples: number
  readonly fewWaiting: number
  readonly manyWaiting: number
  readonly windowSeconds: number
  readonly idleSeconds: number
  /** For each process of those whose handlers wait. */
  readonly waiting5ms: number
}

/** Of the scenarios that some stores have in common. */
export interface HistorySizes {
  readonly history1k: number
  readonly history8k: number
}

export interface OneSlotSizes {
  readonly slot1: number
}

export const COMMON_FULL = {
  bulk: 200_000,
  drain: 300_000,
  payload8k: 30_000,
  latencySamples: 200,
  fewWaiting: 10_000,
  manyWaiting: 1_000_000,
  windowSeconds: 10,
  idleSeconds: 30,
  waiting5ms: 40_000,
} as const satisfies Partial<CommonSizes>

export const COMMON_QUICK = {
  bulk: 10_000,
  drain: 20_000,
  payload8k: 2_000,
  latencySamples: 30,
  fewWaiting: 5_000,
  manyWaiting: 50_000,
  windowSeconds: 2,
  idleSeconds: 3,
  waiting5ms: 4_000,
} as const satisfies Partial<CommonSizes>
