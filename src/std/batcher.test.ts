import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Batcher } from './batcher.ts'
import { seededRandom } from './random.ts'
import { letPromisesRun, VirtualClock } from './virtual-clock.ts'

interface Call {
  readonly items: readonly number[]
  answer(): void
  fail(error: unknown): void
}

/** A receiver that answers when it is told to; the answer to an item is ten times the item. */
function setUp(limits: { maxItems: number; maxInFlight: number }) {
  const calls: Call[] = []
  let open = 0
  let mostOpen = 0
  const send = (items: readonly number[]): Promise<readonly number[]> =>
    new Promise((resolve, reject) => {
      mostOpen = Math.max(mostOpen, ++open)
      calls.push({
        items,
        answer: () => (open--, resolve(items.map((item) => item * 10))),
        fail: (error) => (open--, reject(error)),
      })
    })
  const clock = new VirtualClock()
  const late = (item: number): Error => new Error(`${item} waited too long`)
  return {
    batcher: new Batcher<number, number>({ send, ...limits, clock: () => clock, timeoutMs: 1_000, late }),
    clock,
    calls,
    sizes: () => calls.map(({ items }) => items.length),
    mostOpen: () => mostOpen,
  }
}

const WIDE = { maxItems: 100, maxInFlight: 2 }
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index)

describe('a batcher', () => {
  test('sends a lone item in the same turn', async () => {
    const { batcher, calls } = setUp(WIDE)
    const answer = batcher.add(4)
    await Promise.resolve()
    expect(calls.map(({ items }) => items)).toEqual([[4]])
    calls[0]?.answer()
    expect(await answer).toBe(40)
  })

  test('sends together what is asked for in one turn, in order, and answers each with its own', async () => {
    const { batcher, calls } = setUp(WIDE)
    const answers = Promise.all([3, 1, 2].map((item) => batcher.add(item)))
    await letPromisesRun()
    expect(calls.map(({ items }) => items)).toEqual([[3, 1, 2]])
    calls[0]?.answer()
    expect(await answers).toEqual([30, 10, 20])
  })

  test('sends many in one call for each that may be under way, so that both sides are busy', async () => {
    const { batcher, calls, sizes } = setUp(WIDE)
    const answers = Promise.all(upTo(50).map((item) => batcher.add(item)))
    await letPromisesRun()
    expect(sizes()).toEqual([25, 25])
    for (const call of calls) call.answer()
    expect(await answers).toEqual(upTo(50).map((item) => item * 10))
  })

  test('sends together what gathers while as many calls are under way as may be', async () => {
    const { batcher, calls, sizes } = setUp({ maxItems: 100, maxInFlight: 1 })
    const answers = [batcher.add(1)]
    await letPromisesRun()
    for (const item of [2, 3, 4]) {
      answers.push(batcher.add(item))
      await letPromisesRun()
    }
    expect(sizes()).toEqual([1])
    calls[0]?.answer()
    await letPromisesRun()
    expect(sizes()).toEqual([1, 3])
    calls[1]?.answer()
    expect(await Promise.all(answers)).toEqual([10, 20, 30, 40])
  })

  test('does not wait for a call under way while another may begin', async () => {
    const { batcher, sizes } = setUp(WIDE)
    void batcher.add(1)
    await letPromisesRun()
    void batcher.add(2)
    await letPromisesRun()
    expect(sizes()).toEqual([1, 1])
  })

  test('is bounded in size and in flight', async () => {
    const { batcher, calls, sizes, mostOpen } = setUp({ maxItems: 10, maxInFlight: 3 })
    const answers = Promise.all(upTo(95).map((item) => batcher.add(item)))
    await letPromisesRun()
    expect(sizes()).toEqual([10, 10, 10])
    for (let at = 0; at < calls.length; at++) {
      calls[at]?.answer()
      await letPromisesRun()
    }
    expect(await answers).toEqual(upTo(95).map((item) => item * 10))
    expect(sizes()).toEqual([10, 10, 10, 10, 10, 10, 10, 10, 10, 5])
    expect(mostOpen()).toBe(3)
  })

  test('gives an error to exactly the callers of the call that failed, and goes on', async () => {
    const { batcher, calls } = setUp({ maxItems: 2, maxInFlight: 1 })
    const outcomes = Promise.allSettled(upTo(6).map((item) => batcher.add(item)))
    const error = new Error('the second call failed')
    for (const end of [(c: Call) => c.answer(), (c: Call) => c.fail(error), (c: Call) => c.answer()]) {
      await letPromisesRun()
      end(calls.at(-1) as Call)
    }
    expect((await outcomes).map((o) => (o.status === 'fulfilled' ? o.value : o.reason))).toEqual([
      0,
      10,
      error,
      error,
      40,
      50,
    ])
  })

  test('goes on after a call that throws instead of rejecting', async () => {
    let calls = 0
    const batcher = new Batcher<number, number>({
      send: (items) => {
        if (calls++ === 0) throw new Error('thrown')
        return Promise.resolve(items)
      },
      ...WIDE,
      clock: () => new VirtualClock(),
      timeoutMs: 1_000,
      late: () => new Error('late'),
    })
    await expect(batcher.add(1)).rejects.toThrow('thrown')
    expect(await batcher.add(2)).toBe(2)
  })

  test('turns away whoever has waited too long, under way or not, and each at its own time', async () => {
    const { batcher, calls, clock, sizes } = setUp({ maxItems: 2, maxInFlight: 1 })
    const ends: [item: number, atMs: number, how: string][] = []
    const add = (item: number): void => {
      batcher.add(item).then(
        (answer) => ends.push([item, clock.monotonicMs(), String(answer)]),
        (error: Error) => ends.push([item, clock.monotonicMs(), error.message]),
      )
    }
    const begunMs = clock.monotonicMs()
    add(0)
    await letPromisesRun()
    for (const item of [1, 2, 3]) {
      await clock.advance(200)
      add(item)
    }
    await clock.advance(300)
    calls[0]?.answer()
    await clock.advance(10_000)
    // The second call carries 1 and 2, and is never answered; 3 was never sent.
    expect(sizes()).toEqual([1, 2])
    expect(ends.map(([item, atMs, how]) => [item, atMs - begunMs, how])).toEqual([
      [0, 900, '0'],
      [1, 1_200, '1 waited too long'],
      [2, 1_400, '2 waited too long'],
      [3, 1_600, '3 waited too long'],
    ])
    calls[1]?.answer()
    await letPromisesRun()
    expect(ends).toHaveLength(4)
    expect(clock.nextDueMs()).toBeUndefined()
  })

  test('sets no timer while nobody has to wait, and leaves none behind', async () => {
    const { batcher, calls, clock } = setUp({ maxItems: 100, maxInFlight: 1 })
    const first = batcher.add(1)
    await letPromisesRun()
    expect(clock.nextDueMs()).toBeUndefined()
    const second = batcher.add(2)
    expect(clock.nextDueMs()).toBeDefined()
    calls[0]?.answer()
    await letPromisesRun()
    calls[1]?.answer()
    expect(await Promise.all([first, second])).toEqual([10, 20])
    expect(clock.nextDueMs()).toBeUndefined()
  })

  test('answers each item with its own and stays within its bounds, however calls end', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({ maxItems: fc.integer({ min: 1, max: 7 }), maxInFlight: fc.integer({ min: 1, max: 4 }) }),
        fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 8 }),
        fc.integer(),
        async (limits, turns, seed) => {
          const { batcher, calls, sizes, mostOpen } = setUp(limits)
          const random = seededRandom(seed)
          const pending: Promise<unknown>[] = []
          let ended = 0
          const failed = new Set<number>()
          /** Ends calls in an order of its own, every third by an error that names its items. */
          const endOne = async (): Promise<void> => {
            const open = calls.slice(ended)
            const call = open[Math.floor(random.float() * open.length)] as Call
            calls.splice(calls.indexOf(call), 1)
            calls.splice(ended++, 0, call)
            if (random.float() < 1 / 3) {
              call.items.forEach((item) => failed.add(item))
              call.fail(call.items)
            } else call.answer()
            await letPromisesRun()
          }
          let next = 0
          for (const count of turns) {
            for (let added = 0; added < count; added++) {
              pending.push(batcher.add(next++).catch((items: unknown) => items))
            }
            await letPromisesRun()
            if (random.float() < 0.5 && calls.length > ended) await endOne()
          }
          while (calls.length > ended) await endOne()
          const answers = await Promise.all(pending)
          answers.forEach((answer, item) => {
            if (failed.has(item)) expect(answer).toContain(item)
            else expect(answer).toBe(item * 10)
          })
          expect(Math.max(...sizes())).toBeLessThanOrEqual(limits.maxItems)
          expect(mostOpen()).toBeLessThanOrEqual(limits.maxInFlight)
          expect(calls.flatMap(({ items }) => items).toSorted((a, b) => a - b)).toEqual(upTo(next))
        },
      ),
      { numRuns: 60 },
    )
  })
})
