import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sleep } from './clock.ts'
import { letPromisesRun, VirtualClock } from './virtual-clock.ts'

/** Records what fires and when, counted from the start of the clock. */
function recorder(clock: VirtualClock) {
  const fired: [label: string, atMs: number][] = []
  return {
    fired,
    at: (label: string) => (): void => void fired.push([label, clock.monotonicMs()]),
  }
}

describe('a virtual clock', () => {
  test('stands still until it is told to move', async () => {
    const clock = new VirtualClock(1_000)
    const { fired, at } = recorder(clock)
    clock.after(1, at('a'))
    await letPromisesRun()
    expect([clock.now(), clock.monotonicMs(), fired]).toEqual([1_000, 0, []])
    await clock.advance(1)
    expect([clock.now(), clock.monotonicMs(), fired]).toEqual([1_001, 1, [['a', 1]]])
  })

  test('starts at a date, or at some moment that is the same in every run', () => {
    const date = new Date('2031-05-06T07:08:09Z')
    expect(new VirtualClock(date).now()).toBe(date.getTime())
    expect(new VirtualClock().now()).toBe(new VirtualClock().now())
  })

  test('fires in order of the due time, and ties in the order they were set', async () => {
    const clock = new VirtualClock()
    const { fired, at } = recorder(clock)
    clock.after(20, at('d'))
    clock.after(10, at('a'))
    clock.after(10, at('b'))
    clock.after(10, at('c'))
    await clock.advance(20)
    expect(fired).toEqual([
      ['a', 10],
      ['b', 10],
      ['c', 10],
      ['d', 20],
    ])
  })

  test('fires each timer at its own time, whatever delays and strides', async () => {
    const delay = fc.nat(1_000)
    await fc.assert(
      fc.asyncProperty(
        fc.array(delay, { maxLength: 30 }),
        fc.array(fc.nat(300), { maxLength: 6 }),
        async (delays, strides) => {
          const clock = new VirtualClock()
          const { fired, at } = recorder(clock)
          delays.forEach((ms, index) => clock.after(ms, at(String(index))))
          for (const ms of strides) await clock.advance(ms)
          const passedMs = strides.reduce((sum, ms) => sum + ms, 0)
          // Timers of 0 are fired by the first step, even one of 0.
          const due =
            strides.length === 0
              ? []
              : delays.map((ms, index) => [ms, index] as const).filter(([ms]) => ms <= passedMs)
          due.sort(([a, i], [b, j]) => a - b || i - j)
          expect(fired).toEqual(due.map(([ms, index]) => [String(index), ms]))
          expect(clock.monotonicMs()).toBe(passedMs)
        },
      ),
      { numRuns: 50 },
    )
  })

  test('lets the promise work of one timer run before the next one fires', async () => {
    const clock = new VirtualClock()
    const log: string[] = []
    clock.after(10, () => {
      void (async () => {
        for (let hop = 0; hop < 20; hop++) await Promise.resolve()
        log.push('work of the first')
      })()
    })
    clock.after(10, () => log.push('second'))
    await clock.advance(10)
    expect(log).toEqual(['work of the first', 'second'])
  })

  test('lets promise work that is under way run before the first timer', async () => {
    const clock = new VirtualClock()
    const { fired, at } = recorder(clock)
    void Promise.resolve().then(() => clock.after(5, at('late')))
    await clock.advance(5)
    expect(fired).toEqual([['late', 5]])
  })

  test('fires timers that timers set, on the way', async () => {
    const clock = new VirtualClock()
    const { fired, at } = recorder(clock)
    clock.after(10, () => {
      at('outer')()
      clock.after(0, at('at once'))
      clock.after(5, at('inner'))
      clock.after(50, at('beyond'))
    })
    await clock.advance(20)
    expect(fired).toEqual([
      ['outer', 10],
      ['at once', 10],
      ['inner', 15],
    ])
    expect(clock.nextDueMs()).toBe(clock.now() + 40)
  })

  test('goes through a loop of sleeps in one step', async () => {
    const clock = new VirtualClock()
    let beats = 0
    void (async () => {
      for (; beats < 1_000; beats++) await sleep(clock, 60_000)
    })()
    await clock.advance(3_600_000)
    expect(beats).toBe(60)
  })

  test('never fires what was called off, and takes a second calling off calmly', async () => {
    const clock = new VirtualClock()
    const { fired, at } = recorder(clock)
    const cancel = clock.after(10, at('never'))
    const cancelLate = clock.after(5, at('fired'))
    clock.after(5, () => cancel())
    await clock.advance(20)
    cancel()
    cancelLate()
    expect(fired).toEqual([['fired', 5]])
    expect(clock.nextDueMs()).toBeUndefined()
  })

  test('calls off only the timer that is meant among equals', async () => {
    const clock = new VirtualClock()
    const { fired, at } = recorder(clock)
    clock.after(5, at('a'))
    const cancel = clock.after(5, at('b'))
    clock.after(5, at('c'))
    cancel()
    await clock.advance(5)
    expect(fired.map(([label]) => label)).toEqual(['a', 'c'])
  })

  test('takes a delay below zero as none, and one without end as never', async () => {
    const clock = new VirtualClock()
    const { fired, at } = recorder(clock)
    clock.after(Infinity, at('never'))
    clock.after(Infinity, at('never either'))
    clock.after(-5, at('now'))
    await clock.advance(1e9)
    expect(fired).toEqual([['now', 0]])
    expect(await clock.advanceUntil(() => fired.length > 1)).toBe(false)
  })
})

describe('advancing until something holds', () => {
  test('moves only as far as it must', async () => {
    const clock = new VirtualClock()
    const { fired, at } = recorder(clock)
    for (const ms of [10, 20, 30]) clock.after(ms, at(String(ms)))
    expect(await clock.advanceUntil(() => fired.length === 2)).toBe(true)
    expect([clock.monotonicMs(), fired.length]).toEqual([20, 2])
  })

  test('goes timer by timer, also among those due at the same time', async () => {
    const clock = new VirtualClock()
    const { fired, at } = recorder(clock)
    for (const label of ['a', 'b', 'c']) clock.after(10, at(label))
    await clock.advanceUntil(() => fired.length === 2)
    expect(fired.map(([label]) => label)).toEqual(['a', 'b'])
  })

  test('does not move where it holds already, though it lets promises run first', async () => {
    const clock = new VirtualClock()
    let done = false
    clock.after(10, () => undefined)
    void Promise.resolve().then(() => (done = true))
    expect(await clock.advanceUntil(() => done)).toBe(true)
    expect(clock.monotonicMs()).toBe(0)
  })

  test('says false where nothing is left that could make it true', async () => {
    const clock = new VirtualClock()
    clock.after(10, () => undefined)
    expect(await clock.advanceUntil(() => false)).toBe(false)
    expect(clock.monotonicMs()).toBe(10)
  })

  test('gives up at its limit, without firing what lies beyond', async () => {
    const clock = new VirtualClock()
    const { fired, at } = recorder(clock)
    clock.after(1_000, at('at the limit'))
    clock.after(1_001, at('beyond'))
    expect(await clock.advanceUntil(() => false, 1_000)).toBe(false)
    expect(fired).toEqual([['at the limit', 1_000]])
  })
})
