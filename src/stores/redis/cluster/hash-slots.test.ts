import { expect, test } from 'vitest'
import { hashSlotOf } from './hash-slots.ts'

// The answers of CLUSTER KEYSLOT.
test.for([
  ['123456789', 12739],
  ['foo', 12182],
  ['{foo}bar', 12182],
  ['a{foo}bar{zap}', 12182],
  ['foo{}{bar}', 8363],
  ['foo{{bar}}zap', 4015],
  ['ключ', 10303],
] as const)('%s is in hash slot %i', ([key, hashSlot]) => {
  expect(hashSlotOf(key)).toBe(hashSlot)
})
