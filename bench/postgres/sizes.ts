import { COMMON_FULL, COMMON_QUICK, type CommonSizes } from '../contest/sizes.ts'

export interface PostgresSizes extends CommonSizes {
  readonly payload1k: number
  readonly scheduled: number
  readonly oldTransaction: number
  readonly embedded: number
}

export const FULL: PostgresSizes = {
  ...COMMON_FULL,
  single: { holdfast: 100_000, peer: 5_000 },
  payload1k: 100_000,
  scheduled: 1_000_000,
  oldTransaction: 1_000_000,
  embedded: 200_000,
}

export const QUICK: PostgresSizes = {
  ...COMMON_QUICK,
  single: { holdfast: 10_000, peer: 500 },
  payload1k: 5_000,
  scheduled: 20_000,
  oldTransaction: 50_000,
  embedded: 10_000,
}
