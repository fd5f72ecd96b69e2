import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Bell } from './bell.ts'
import { VirtualClock } from './virtual-clock.ts'

function setUp(): { clock: VirtualClock; bell: Bell } {
  const clock = new VirtualClock()
  return { clock, bell: new Bell(clock) }
}

describe('a bell', () => {
  test('ends a wait when it rings', async () => {
    const { clock, bell } = setUp()
    const wait = bell.wait(1_000)
    await clock.advance(10)
    bell.ring()
    expect(await wait).toBe(true)
    expect(clock.monotonicMs()).toBe(10)
    expect(clock.nextDueMs()).toBeUndefined()
  })

  test('keeps a ring that came while nobody waited, for one wait', async () => {
    const { clock, bell } = setUp()
    bell.ring()
    expect(await bell.wait(1_000)).toBe(true)
    const next = bell.wait(1_000)
    await clock.advance(1_000)
    expect(await next).toBe(false)
  })

  test('takes many rings as one', async () => {
    const { clock, bell } = setUp()
    bell.ring()
    bell.ring()
    expect(await bell.wait(1_000)).toBe(true)
    const next = bell.wait(5)
    await clock.advance(5)
    expect(await next).toBe(false)
  })

  test('gives up when the time is over', async () => {
    const { clock, bell } = setUp()
    let answer: boolean | undefined
    const wait = bell.wait(1_000).then((rang) => (answer = rang))
    await clock.advance(999)
    expect(answer).toBeUndefined()
    await clock.advance(1)
    await wait
    expect(answer).toBe(false)
  })

  test('does not lose a ring that crosses the timeout', async () => {
    const { clock, bell } = setUp()
    const wait = bell.wait(10)
    // Fires right after the wait's own timer, before anything that the wait does next.
    clock.after(10, () => bell.ring())
    await clock.advance(10)
    const first = await wait
    const second = first ? undefined : bell.wait(0)
    await clock.advance(0)
    expect(first || (await second)).toBe(true)
  })

  test('does not lose a ring between the end of a wait and what the waiter does next', async () => {
    const { clock, bell } = setUp()
    const wait = bell.wait(1_000)
    bell.ring()
    bell.ring()
    await wait
    bell.ring()
    expect(await bell.wait(1_000)).toBe(true)
    expect(clock.monotonicMs()).toBe(0)
  })

  test('answers every ring by a wait that ends at or after it', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(50), { minLength: 1, maxLength: 10 }),
        fc.integer({ min: 1, max: 20 }),
        async (gaps, timeoutMs) => {
          const { clock, bell } = setUp()
          const heardAt: number[] = []
          let open = true
          const loop = (async () => {
            while (open) if (await bell.wait(timeoutMs)) heardAt.push(clock.monotonicMs())
          })()
          for (const gap of gaps) {
            await clock.advance(gap)
            bell.ring()
            // Heard at once: the loop waits or is about to look.
            await clock.advance(0)
            expect(heardAt.at(-1)).toBe(clock.monotonicMs())
          }
          open = false
          await clock.advance(timeoutMs)
          await loop
          expect(heardAt.length).toBe(gaps.length)
        },
      ),
      { numRuns: 50 },
    )
  })
})
