import { expect, test } from 'vitest'
import { ScanCursor } from './scan-cursor.ts'

/** A cursor on a clock that stands still but for the steps. */
function site(): {
  step: (takesMs: number, end: number | null) => Promise<number>
  pass: (ms: number) => void
} {
  let nowMs = 0
  const cursor = new ScanCursor({ monotonicMs: () => nowMs })
  const step = async (takesMs: number, end: number | null): Promise<number> => {
    let startedAt = -1
    await cursor.run((from) => {
      startedAt = from
      nowMs += takesMs
      return Promise.resolve(end)
    })
    return startedAt
  }
  return { step, pass: (ms) => (nowMs += ms) }
}

test('a scan from the start that costs nothing is made every time', async () => {
  const { step, pass } = site()
  const from: number[] = []
  for (let at = 1; at <= 3; at++) {
    from.push(await step(1, at))
    pass(1_000)
  }
  expect(from).toEqual([0, 0, 0])
})

test('one that takes long is made as often as costs a twentieth of the time; the others continue', async () => {
  const { step, pass } = site()
  const from = [await step(100, 7)]
  pass(1_000)
  from.push(await step(1, null))
  from.push(await step(1, 9))
  pass(500)
  from.push(await step(1, null))
  pass(500)
  from.push(await step(100, null), await step(1, null))
  expect(from).toEqual([0, 7, 7, 9, 0, 9])
})
