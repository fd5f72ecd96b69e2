import { describe, expect, test } from 'vitest'
import { StartGate } from './start-gate.ts'

describe('the gate before a start', () => {
  test('makes room for all slots behind jobs that it knows nothing of with one heartbeat', () => {
    let wanted = 0
    const gate = new StartGate(4, () => wanted++)
    expect(gate.allows(0, 10, true, 0)).toBe(false)
    expect(wanted).toBe(1)
    gate.answered(gate.sending(0, 10))
    for (let before = 0; before < 4; before++) expect(gate.allows(before, 10, true, 1)).toBe(true)
    expect(gate.allows(4, 10, true, 1)).toBe(false)
    expect(wanted).toBe(1)
  })

  test('does not lower the number while such jobs may stand before one that was started', () => {
    const gate = new StartGate(2, () => undefined)
    gate.answered(gate.sending(0, 10))
    expect(gate.allows(1, 10, true, 0)).toBe(true)
    const sent = Array.from({ length: 5 }, () => gate.sending(2, 10))
    expect(sent).toEqual([12, 12, 12, 12, 12])
    expect(gate.sending(2, 0)).toBe(2)
  })
})
