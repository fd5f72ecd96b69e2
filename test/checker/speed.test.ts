/** How the cost of judging grows. For the speed itself: `CHECKER_EVENTS=10000000 npx vitest run test/checker/speed`. */
import { expect, test } from 'vitest'
import { check } from './check.ts'
import type { HistoryEvent } from './history.ts'
import { BOUNDS } from './testing/broken.ts'
import { Reference } from './testing/reference.ts'

const EVENTS = Number(process.env['CHECKER_EVENTS'] ?? 100_000)
const STEPS_PER_EVENT = 0.62
const TIMES_LONGER = 10

test('the cost of an event does not grow with the length of its history', { timeout: 600_000 }, () => {
  // The first run compiles the code, so it does not count.
  cpuUsPerEvent(EVENTS / TIMES_LONGER)
  const short = cpuUsPerEvent(EVENTS / TIMES_LONGER)
  const long = cpuUsPerEvent(EVENTS)
  // A checker that looked back over the whole history would cost ten times as much. It is 1 in practice, plus noise.
  expect(long).toBeLessThan(3 * short)
})

/** The reference makes its events as they are asked for, so its own time is measured on the same run and taken off. */
function cpuUsPerEvent(events: number): number {
  const history = new Reference({ seed: 1, steps: events * STEPS_PER_EVENT, faults: 0.001 })
  let makingUs = 0
  function* measured(): Generator<HistoryEvent[]> {
    const source = history[Symbol.iterator]()
    for (;;) {
      const startUs = cpuUs()
      const chunk: HistoryEvent[] = []
      let next = source.next()
      while (next.done !== true) {
        chunk.push(next.value)
        if (chunk.length === 10_000) break
        next = source.next()
      }
      makingUs += cpuUs() - startUs
      yield chunk
      if (next.done === true) return
    }
  }
  function* flat(): Generator<HistoryEvent> {
    for (const chunk of measured()) yield* chunk
  }
  const startUs = cpuUs()
  const { violations, counted } = check(flat(), { ...BOUNDS, starveMs: 600_000 })
  const checkingUs = cpuUs() - startUs - makingUs
  expect(violations).toEqual([])
  const perSecond = Math.round((counted.events / checkingUs) * 1_000_000)
  const heapMb = Math.round(process.memoryUsage().heapUsed / 1_048_576)
  console.log(`${counted.events} events, ${perSecond} a second of processor time, heap ${heapMb} MB`)
  return checkingUs / counted.events
}

function cpuUs(): number {
  return process.cpuUsage().user
}
