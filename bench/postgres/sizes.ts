/** How much of everything: enough to be sure of, or just enough to see that it works. */
export interface Sizes {
  readonly bulk: number
  /** One by one is so slow with the peers that they get fewer. */
  readonly single: { readonly holdfast: number; readonly peer: number }
  readonly drain: number
  readonly payload1k: number
  readonly payload8k: number
  readonly latencySamples: number
  readonly fewWaiting: number
  readonly manyWaiting: number
  readonly scheduled: number
  readonly windowSeconds: number
  readonly oldTransaction: number
  readonly idleSeconds: number
  /** For each process of those whose handlers wait. */
  readonly waiting5ms: number
  readonly embedded: number
}

export const FULL: Sizes = {
  bulk: 200_000,
  single: { holdfast: 100_000, peer: 5_000 },
  drain: 300_000,
  payload1k: 100_000,
  payload8k: 30_000,
  latencySamples: 200,
  fewWaiting: 10_000,
  manyWaiting: 1_000_000,
  scheduled: 1_000_000,
  windowSeconds: 10,
  oldTransaction: 1_000_000,
  idleSeconds: 30,
  waiting5ms: 40_000,
  embedded: 200_000,
}

export const QUICK: Sizes = {
  bulk: 10_000,
  single: { holdfast: 10_000, peer: 500 },
  drain: 20_000,
  payload1k: 5_000,
  payload8k: 2_000,
  latencySamples: 30,
  fewWaiting: 5_000,
  manyWaiting: 50_000,
  scheduled: 20_000,
  windowSeconds: 2,
  oldTransaction: 50_000,
  idleSeconds: 3,
  waiting5ms: 4_000,
  embedded: 10_000,
}
