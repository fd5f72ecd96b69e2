/** How fast a long history is judged: `CHECKER_EVENTS=10000000 npx vitest run --project unit test/checker/speed` */
import { expect, test } from 'vitest'
import { check } from './check.ts'
import type { HistoryEvent } from './history.ts'
import { BOUNDS } from './testing/broken.ts'
import { Reference } from './testing/reference.ts'

const EVENTS = Number(process.env['CHECKER_EVENTS'] ?? 100_000)
const STEPS_PER_EVENT = 0.62

/** The reference makes its events as they are asked for, so its own time is taken off, measured on the same run. */
test('a long history is judged in one pass', { timeout: 600_000 }, () => {
  const history = new Reference({ seed: 1, steps: EVENTS * STEPS_PER_EVENT, faults: 0.001 })
  let makingMs = 0
  function* measured(): Generator<HistoryEvent[]> {
    const source = history[Symbol.iterator]()
    for (;;) {
      const startMs = cpuMs()
      const chunk: HistoryEvent[] = []
      let next = source.next()
      while (next.done !== true) {
        chunk.push(next.value)
        if (chunk.length === 10_000) break
        next = source.next()
      }
      makingMs += cpuMs() - startMs
      yield chunk
      if (next.done === true) return
    }
  }
  function* flat(): Generator<HistoryEvent> {
    for (const chunk of measured()) yield* chunk
  }
  const startMs = cpuMs()
  const { violations, counted } = check(flat(), { ...BOUNDS, starveMs: 600_000 })
  const checkingMs = cpuMs() - startMs - makingMs
  expect(violations).toEqual([])
  const perSecond = Math.round((counted.events / checkingMs) * 1_000)
  const heapMb = Math.round(process.memoryUsage().heapUsed / 1_048_576)
  console.log(`${counted.events} events, ${perSecond} a second of processor time, heap ${heapMb} MB`)
  // The aim is 500,000 with 10 million events; what a busy machine makes of a short run is no failure.
  expect(perSecond).toBeGreaterThan(20_000)
})

function cpuMs(): number {
  return process.cpuUsage().user / 1_000
}
