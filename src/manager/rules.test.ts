import { describe, expect, test } from 'vitest'
import { problemsOf, type WorkerFacts } from './rules.ts'

const MINUTE_MS = 60_000
const thresholds = { idleMs: 30 * MINUTE_MS, errorRate: 0.1, queueSize: 1_000 }
const fine: WorkerFacts = {
  health: { healthy: true, lastPollMsAgo: 500, running: 0, waiting: 0, slots: 5, busy: 0, stopping: false },
  idleMs: 0,
  recent: { processed: 0, failed: 0 },
  waiting: { queues: [], size: 0, oldestMs: null },
}
const waiting = { queues: ['mail', 'news'], size: 5, oldestMs: 40 * MINUTE_MS }
const problems = (facts: Partial<WorkerFacts>): string[] => problemsOf({ ...fine, ...facts }, thresholds)

describe('a worker', () => {
  test('with nothing wrong has no problems', () => {
    expect(problems({})).toEqual([])
  })

  test('that the store does not answer is cut off, but not one that was told to stop', () => {
    const health = { ...fine.health, healthy: false, lastPollMsAgo: 12_000 }
    expect(problems({ health })).toEqual(['The store has not answered it for 12s.'])
    expect(problems({ health: { ...health, stopping: true } })).toEqual([])
  })

  test('that finishes nothing while jobs wait is inactive', () => {
    const health = { ...fine.health, busy: 2 }
    expect(problems({ health, waiting, idleMs: 31 * MINUTE_MS })).toEqual([
      'It has finished nothing for 31m, while a job has been waiting for 40m; 2 of 5 slots are busy.',
    ])
    expect(problems({ waiting, idleMs: 29 * MINUTE_MS })).toEqual([])
  })

  test('that had nothing to do is not', () => {
    const idleMs = 24 * 60 * MINUTE_MS
    expect(problems({ idleMs })).toEqual([])
    expect(problems({ idleMs, waiting: { ...waiting, oldestMs: 1_000 } })).toEqual([])
    expect(problems({ idleMs, waiting: { ...waiting, oldestMs: null } })).toEqual([])
    expect(problems({ idleMs, waiting: null })).toEqual([])
  })

  test('whose attempts fail too often is failing; one failure or two say nothing', () => {
    expect(problems({ recent: { processed: 1_234, failed: 200 } })).toEqual([
      '200 of its last 1,234 attempts failed: 16.2 %, more than 10 %.',
    ])
    expect(problems({ recent: { processed: 40, failed: 14 } })).toEqual([
      '14 of its last 40 attempts failed: 35 %, more than 10 %.',
    ])
    expect(problems({ recent: { processed: 10, failed: 1 } })).toEqual([])
    expect(problems({ recent: { processed: 9, failed: 9 } })).toEqual([])
  })

  test('whose queues are too long is overrun', () => {
    const long = { ...waiting, size: 1_001, oldestMs: 1 }
    expect(problems({ waiting: long })).toEqual(['1,001 jobs wait in mail, news, more than 1,000.'])
    expect(problems({ waiting: { ...long, size: 1_000 } })).toEqual([])
  })
})
