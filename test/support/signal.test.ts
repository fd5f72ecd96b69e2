import { describe, expect, test } from 'vitest'
import { Signal } from './signal.ts'

describe('waiting for a signal', () => {
  test('ends with the notification that makes the fact true', async () => {
    const signal = new Signal()
    let count = 0
    const waiting = signal.until(() => expect(count).toBe(2))
    for (let times = 0; times < 2; times++) {
      count++
      signal.notify()
    }
    count = 3
    await waiting
  })

  test('ends at once if the fact already holds', async () => {
    await new Signal().until(() => true)
  })

  test('rejects at the deadline with the last failed assertion', async () => {
    const waiting = new Signal().until(() => expect('seen').toBe('wanted'), 1)
    await expect(waiting).rejects.toThrow(/wanted/)
  })

  test('names a fact that only says false', async () => {
    const isOver = (): boolean => false
    await expect(new Signal().until(() => isOver(), 1)).rejects.toThrow('isOver()')
  })
})
