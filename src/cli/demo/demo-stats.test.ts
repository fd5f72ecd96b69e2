import { describe, expect, test } from 'vitest'
import type { Events } from '../../job/events.ts'
import { Emitter } from '../../std/emitter.ts'
import { VirtualClock } from '../../std/virtual-clock.ts'
import { DemoStats } from './demo-stats.ts'

function statsWith(slots = 2) {
  const clock = new VirtualClock()
  const events = new Emitter<Events>((error) => {
    throw error
  })
  const stats = new DemoStats(clock, slots)
  stats.listenTo({ on: (name, listener) => events.on(name, listener) })
  const facts = (id: string, job = 'a') =>
    ({ id, job, queue: 'q', worker: 'w', attempt: 1, maxAttempts: 4, correlationId: id }) as const
  return {
    clock,
    stats,
    events,
    enqueue: (id: string) => events.emit('job.enqueued', { id, job: 'a', queue: 'q', duplicate: false }),
    start: (id: string) => events.emit('job.started', { ...facts(id), waitMs: 1 }),
    complete: (id: string, durationMs = 10) =>
      events.emit('job.completed', { ...facts(id), waitMs: 5, durationMs }),
    fail: (id: string, retryInMs: number | null) =>
      events.emit('job.failed', {
        ...facts(id),
        waitMs: 5,
        durationMs: 10,
        error: new Error('boom'),
        kind: 'transient',
        fingerprint: 'f',
        final: retryInMs === null,
        retryInMs,
      }),
    park: (id: string) =>
      events.emit('job.snoozed', {
        ...facts(id),
        waitMs: 0,
        durationMs: 1,
        delayMs: 900,
        error: new Error('down'),
      }),
    progress: (id: string, done: number) =>
      events.emit('job.progress', { ...facts(id), done, total: 10, note: 'rows' }),
  }
}

describe('demo stats', () => {
  test('counts what becomes of jobs', () => {
    const { stats, enqueue, complete, fail, park } = statsWith()
    for (const id of ['1', '2', '3']) enqueue(id)
    complete('1')
    fail('2', 500)
    fail('2', null)
    park('3')
    expect(stats.read().totals).toEqual({
      enqueued: 3,
      completed: 1,
      retried: 1,
      parked: 1,
      dead: 1,
      released: 0,
    })
  })

  test('gives rates and history of whole seconds, and counts the seconds in which nothing happened', async () => {
    const { stats, clock, enqueue, complete, fail } = statsWith()
    for (let n = 0; n < 6; n++) enqueue(String(n))
    for (let n = 0; n < 3; n++) complete(String(n))
    await clock.advance(3_000)
    fail('4', 100)
    await clock.advance(1_000)
    complete('5')
    expect(stats.read()).toMatchObject({
      perSecond: { in: 1.5, out: 0.75 },
      failing: 0.25,
      completedHistory: [3, 0, 0, 0],
      failedHistory: [0, 0, 0, 1],
    })
  })

  test('forgets: rates after seconds, history after a minute', async () => {
    const { stats, clock, enqueue, complete } = statsWith()
    enqueue('1')
    complete('1')
    await clock.advance(90_000)
    const { perSecond, wait, completedHistory } = stats.read()
    expect({ perSecond, wait }).toEqual({ perSecond: { in: 0, out: 0 }, wait: null })
    expect(completedHistory).toEqual(Array(60).fill(0))
  })

  test('gives percentiles of the times', () => {
    const { stats, complete } = statsWith()
    for (let ms = 1; ms <= 100; ms++) complete(String(ms), ms)
    expect(stats.read().run).toEqual({ p50: 51, p95: 96 })
    expect(stats.read().wait).toEqual({ p50: 5, p95: 5 })
  })
})

describe('the slots of demo stats', () => {
  test('keep a job in its place, and show what ran there last', async () => {
    const { stats, clock, start, complete, progress } = statsWith()
    start('1')
    start('2')
    complete('1', 7)
    await clock.advance(100)
    progress('2', 3)
    expect(stats.read().slots).toMatchObject([
      { id: '1', state: 'completed', ms: 7 },
      { id: '2', state: 'running', ms: 100, progress: { done: 3, total: 10, note: 'rows' } },
    ])
    start('3')
    expect(stats.read().slots).toMatchObject([{ id: '3' }, { id: '2' }])
  })

  test('are never more than there are, though a start may be told before the end that made room for it', () => {
    const { stats, start, complete, progress } = statsWith(1)
    start('1')
    start('2')
    progress('2', 4)
    expect(stats.read().slots).toMatchObject([{ id: '1' }])
    complete('1')
    expect(stats.read().slots).toMatchObject([{ id: '2', state: 'running', progress: { done: 4 } }])
    start('3')
    complete('3')
    complete('2')
    expect(stats.read().slots).toMatchObject([{ id: '2', state: 'completed' }])
  })
})

describe('the troubles of demo stats', () => {
  test('are the newest first, and bounded', () => {
    const { stats, fail } = statsWith()
    for (let n = 0; n < 100; n++) fail(String(n), n)
    const { troubles } = stats.read()
    expect(troubles).toHaveLength(30)
    expect(troubles[0]).toMatchObject({ kind: 'retry', againInMs: 99, reason: 'boom' })
  })

  test('count jobs that are parked for one reason on one line', () => {
    const { stats, fail, park } = statsWith()
    park('1')
    fail('2', 1)
    park('3')
    expect(stats.read().troubles).toMatchObject([
      { kind: 'parked', times: 2 },
      { kind: 'retry', times: 1 },
    ])
  })
})
