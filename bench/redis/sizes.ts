import { COMMON_FULL, COMMON_QUICK, type CommonSizes, type OneSlotSizes } from '../contest/sizes.ts'

export interface RedisSizes extends CommonSizes, OneSlotSizes {
  readonly memory: number
}

export const FULL: RedisSizes = {
  ...COMMON_FULL,
  single: { holdfast: 100_000, peer: 100_000 },
  slot1: 20_000,
  memory: 200_000,
}

export const QUICK: RedisSizes = {
  ...COMMON_QUICK,
  single: { holdfast: 10_000, peer: 10_000 },
  slot1: 2_000,
  memory: 20_000,
}
