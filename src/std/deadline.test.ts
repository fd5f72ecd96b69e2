import { describe, expect, test } from 'vitest'
import { withDeadline } from './deadline.ts'
import { VirtualClock } from './virtual-clock.ts'

const late = (): Error => new Error('too late')

describe('a deadline', () => {
  test('hands on the answer of what ends in time, and leaves no timer', async () => {
    const clock = new VirtualClock()
    expect(await withDeadline(clock, 10, Promise.resolve('done'), late)).toBe('done')
    expect(clock.nextDueMs()).toBeUndefined()
  })

  test('hands on the error of what fails in time, and leaves no timer', async () => {
    const clock = new VirtualClock()
    const error = new Error('failed')
    await expect(withDeadline(clock, 10, Promise.reject(error), late)).rejects.toBe(error)
    expect(clock.nextDueMs()).toBeUndefined()
  })

  test('rejects what is not answered in time, exactly then', async () => {
    const clock = new VirtualClock()
    let made = 0
    let rejected = false
    const waiting = withDeadline(clock, 10, new Promise(() => undefined), () => (made++, late()))
    const seen = waiting.catch(() => (rejected = true))
    await clock.advance(9)
    expect([rejected, made]).toEqual([false, 0])
    await clock.advance(1)
    await seen
    expect([rejected, made]).toEqual([true, 1])
    await expect(waiting).rejects.toThrow('too late')
  })

  test.each(['an answer', 'an error'])('is not disturbed by %s that comes too late', async (what) => {
    const clock = new VirtualClock()
    let end = (): void => undefined
    const work = new Promise<string>((resolve, reject) => {
      end = () => (what === 'an answer' ? resolve('x') : reject(new Error('nobody hears this')))
    })
    const waiting = withDeadline(clock, 10, work, late)
    const seen = expect(waiting).rejects.toThrow('too late')
    await clock.advance(10)
    await seen
    end()
    // An unhandled rejection would fail this run.
    await clock.advance(10)
  })

  test('does not make the error unless it is needed', async () => {
    const clock = new VirtualClock()
    let made = 0
    await withDeadline(clock, 10, Promise.resolve(1), () => (made++, late()))
    await clock.advance(100)
    expect(made).toBe(0)
  })
})
