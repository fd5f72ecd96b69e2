import { stat } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { sleep, systemClock } from './clock.ts'
import { VirtualClock } from './virtual-clock.ts'

/** A signal that can be asked how many listeners it has left. */
function countingSignal(): { controller: AbortController; listeners: () => number } {
  const controller = new AbortController()
  const { signal } = controller
  let count = 0
  const add = signal.addEventListener.bind(signal)
  const remove = signal.removeEventListener.bind(signal)
  signal.addEventListener = (...args: Parameters<typeof add>) => (count++, add(...args))
  signal.removeEventListener = (...args: Parameters<typeof remove>) => (count--, remove(...args))
  return { controller, listeners: () => count }
}

describe('a sleep', () => {
  test('ends after its time, not before', async () => {
    const clock = new VirtualClock()
    let awake = false
    const nap = sleep(clock, 1_000).then(() => (awake = true))
    await clock.advance(999)
    expect(awake).toBe(false)
    await clock.advance(1)
    await nap
    expect(awake).toBe(true)
  })

  test('ends at once when it is aborted, with the reason, and leaves no timer', async () => {
    const clock = new VirtualClock()
    const controller = new AbortController()
    const reason = new Error('shutdown')
    const nap = sleep(clock, 1_000, controller.signal)
    controller.abort(reason)
    await expect(nap).rejects.toBe(reason)
    expect(clock.nextDueMs()).toBeUndefined()
  })

  test('does not begin where the signal is aborted already', async () => {
    const clock = new VirtualClock()
    const reason = new Error('too late')
    const nap = sleep(clock, 1_000, AbortSignal.abort(reason))
    expect(clock.nextDueMs()).toBeUndefined()
    await expect(nap).rejects.toBe(reason)
  })

  test('is not disturbed by an abort after its end, and leaves no listener behind', async () => {
    const clock = new VirtualClock()
    const { controller, listeners } = countingSignal()
    const nap = sleep(clock, 10, controller.signal)
    expect(listeners()).toBe(1)
    await clock.advance(10)
    await expect(nap).resolves.toBeUndefined()
    expect(listeners()).toBe(0)
    controller.abort()
  })

  test.each<[string, unknown, string]>([
    ['a text', 'stop', 'stop'],
    ['a number', 7, '7 was thrown'],
    ['an object that cannot be turned into text', Object.create(null), '[Object: null prototype] {}'],
  ])('rejects with an Error even where the reason is %s', async (_, reason, message) => {
    const controller = new AbortController()
    const nap = sleep(new VirtualClock(), 10, controller.signal)
    controller.abort(reason)
    await expect(nap).rejects.toMatchObject({ name: 'Error', message, cause: reason })
  })
})

describe("the system's clock", () => {
  test('tells the time of day in whole milliseconds, and a time that only grows', () => {
    const before = Date.now()
    const now = systemClock.now()
    expect(now).toBeGreaterThanOrEqual(before)
    expect(Number.isInteger(now)).toBe(true)
    const times = Array.from({ length: 1_000 }, () => systemClock.monotonicMs())
    expect(times).toEqual(times.toSorted((a, b) => a - b))
  })

  test.each([-1, 0, 1, 1.5])('calls back once after %d ms', async (ms) => {
    let calls = 0
    await new Promise<void>((resolve) => {
      systemClock.after(ms, () => {
        calls++
        resolve()
      })
    })
    expect(calls).toBe(1)
  })

  test.each([0, 1])('does not call back what was called off (%d ms)', async (ms) => {
    const fired: string[] = []
    const cancel = systemClock.after(ms, () => fired.push('called off'))
    const after = new Promise<void>((resolve) => systemClock.after(ms + 1, resolve))
    cancel()
    await after
    expect(fired).toEqual([])
  })

  test('waits where a timer of Node would overflow and fire at once', async () => {
    const fired: string[] = []
    const cancel = systemClock.after(2 ** 40, () => fired.push('at once'))
    await new Promise<void>((resolve) => systemClock.after(2, resolve))
    cancel()
    expect(fired).toEqual([])
  })

  /** Blocks the loop while an answer arrives and a timer falls due; `onAnswer` gets a way to call the timer off. */
  function blocked(onAnswer: (callOff: () => void) => void, onTime: () => void): Promise<void> {
    return new Promise((resolve) => {
      // From here, the loop would come to its timers first.
      systemClock.after(0, () => {
        const callOff = systemClock.after(5, () => {
          onTime()
          resolve()
        })
        stat('.', () => {
          onAnswer(callOff)
          systemClock.after(5, resolve)
        })
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200)
      })
    })
  }

  test('reads what arrived while the loop was blocked before it says that a time is over', async () => {
    const order: string[] = []
    await blocked(
      () => order.push('answered'),
      () => order.push('too late'),
    )
    expect(order).toEqual(['answered', 'too late'])
  })

  test('does not call back what was called off by what arrived while the loop was blocked', async () => {
    const fired: string[] = []
    await blocked(
      (callOff) => callOff(),
      () => fired.push('too late'),
    )
    expect(fired).toEqual([])
  })
})
