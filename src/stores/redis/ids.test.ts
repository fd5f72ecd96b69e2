import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { JobId } from '../../job/ids.ts'
import { packId, packKnown, unpackId } from './ids.ts'

const uuid = fc.uuid().map((text) => text as JobId)

test('a packed id is 22 characters and comes back as it was', () => {
  fc.assert(
    fc.property(uuid, (id) => {
      expect(packId(id)).toMatch(/^[-\w]{22}$/)
      expect(unpackId(packId(id))).toBe(id)
    }),
  )
})

test('packed ids sort as the ids do', () => {
  fc.assert(
    fc.property(uuid, uuid, (a, b) => {
      expect(packId(a) < packId(b)).toBe(a < b)
    }),
  )
})

test('what no job can be called is told apart', () => {
  expect(packKnown('nonsense' as JobId)).toBeNull()
  expect(() => unpackId('not packed')).toThrow('is not a job')
})
