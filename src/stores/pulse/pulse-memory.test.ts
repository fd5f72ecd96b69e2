import { describe, expect, test } from 'vitest'
import { PulseMemory } from './pulse-memory.ts'

function bothSides(): [PulseMemory, PulseMemory] {
  const here = new PulseMemory()
  return [here, new PulseMemory(here.buffer)]
}

describe('the memory of a pulse', () => {
  test('is seen by both sides', () => {
    const [here, there] = bothSides()
    expect([there.sentMs, there.turnedMs, there.patienceMs, there.gone]).toEqual([0, 0, 0, false])
    here.sentMs = 123_456_789.123
    here.turnedMs = 0.001
    here.patienceMs = 3_600_000
    here.setGone()
    expect([there.sentMs, there.turnedMs, there.patienceMs, there.gone]).toEqual([
      123_456_789.123,
      0.001,
      3_600_000,
      true,
    ])
  })

  test('tells what runs, by name and number', () => {
    const [here, there] = bothSides()
    expect(there.running).toBe('')
    here.count('resize', 1)
    here.count('mail', 1)
    here.count('mail', 1)
    expect(there.running).toBe('resize, mail (2)')
    here.count('resize', -1)
    here.count('mail', -1)
    expect(there.running).toBe('mail')
    here.count('mail', -1)
    expect(there.running).toBe('')
  })

  test('cuts names that are too long', () => {
    const [here, there] = bothSides()
    here.count('a'.repeat(200), 1)
    here.count('b', 1)
    expect(there.running).toBe(`${'a'.repeat(64)}, b`)
  })

  test('counts together what is beyond the first 63 names', () => {
    const [here, there] = bothSides()
    for (let n = 1; n <= 100; n++) here.count(`job-${n}`, 1)
    expect(there.running).toMatch(/^job-1, job-2, .*, job-63, others \(37\)$/)
    for (let n = 2; n <= 100; n++) here.count(`job-${n}`, -1)
    expect(there.running).toBe('job-1')
  })
})
