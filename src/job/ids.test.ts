import { expect, test } from 'vitest'
import { isUuid } from '../std/ids.ts'
import { seededRandom } from '../std/random.ts'
import { VirtualClock } from '../std/virtual-clock.ts'
import { makeIds } from './ids.ts'

test('ids of all kinds come from one generator, so that they grow in the order they were made', () => {
  const ids = makeIds(new VirtualClock(), seededRandom(1))
  const made: string[] = [ids.job(), ids.flush(), ids.worker(), ids.job(), ids.job()]
  expect(made.every(isUuid)).toBe(true)
  expect(made.toSorted()).toEqual(made)
  expect(new Set(made).size).toBe(made.length)
})
