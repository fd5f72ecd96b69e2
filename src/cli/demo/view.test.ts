import { describe, expect, test } from 'vitest'
import { render } from './styled-text.ts'
import type { SlotRow, Snapshot, Trouble } from './snapshot.ts'
import { plainLine, summary, view, type Size } from './view.ts'

const counts = { scheduled: 1, blocked: 0, ready: 2, running: 3, completed: 1_234, dead: 4, cancelled: 0 }
const slot: SlotRow = {
  id: '0198-abcdef',
  job: 'import-csv',
  state: 'running',
  ms: 2_100,
  progress: { done: 500, total: 2_000, note: 'rows' },
}
const trouble: Trouble = {
  kind: 'retry',
  atMs: 41_000,
  times: 1,
  job: 'charge-card',
  attempt: 2,
  maxAttempts: 5,
  againInMs: 1_400,
  reason: 'card processor timed out',
}

const snapshot: Snapshot = {
  store: 'memory',
  upMs: 62_000,
  found: 0,
  stopping: false,
  queues: [
    { queue: 'mail', counts },
    { queue: 'media', counts: { ...counts, dead: 0 } },
  ],
  totals: { enqueued: 2_484, completed: 2_468, retried: 31, parked: 7, dead: 4, released: 2 },
  perSecond: { in: 12, out: 11.4 },
  failing: 0.042,
  completedHistory: [3, 9, 12],
  failedHistory: [0, 1, 0],
  wait: { p50: 2, p95: 14 },
  run: { p50: 92, p95: 1_610 },
  slots: [slot, null, { ...slot, state: 'completed', progress: null, job: 'send-welcome', ms: 80 }, null],
  troubles: [
    trouble,
    { ...trouble, kind: 'dead', againInMs: null },
    { ...trouble, kind: 'parked', times: 3 },
  ],
}

function drawn(of: Snapshot, size: Size): string[] {
  return view(of, size).map((line) => render(line, { columns: size.columns, colour: false }))
}

describe('the view', () => {
  const lines = drawn(snapshot, { columns: 80, rows: 24 })
  const text = lines.join('\n')

  test('tells store, uptime and rate, and every queue by state', () => {
    expect(lines[0]).toBe(' holdfast demo   memory store   up 1:02   12.0/s enqueued   1 of 4 slots busy')
    expect(text).toMatch(/mail +1 +2 +3 +1,234 +4\n/)
  })

  test('tells throughput, failures and times', () => {
    expect(text).toMatch(/throughput +11\.4\/s +▃▆█ +wait p50 +2ms +p95 +14ms/)
    expect(text).toMatch(/failures +4\.2 % +▁█▁ +run +p50 +92ms +p95 +1\.6s/)
  })

  test('shows what runs with its progress, and what ran last in a slot', () => {
    expect(text).toMatch(/▸ import-csv +…abcdef +2\.1s +━+─+ +25 % +500 of 2,000 rows/)
    expect(text).toMatch(/✓ send-welcome +…abcdef +80ms\n/)
    expect(text).toContain('· idle')
  })

  test('tells of retries, dead letters and parked jobs, with the reason', () => {
    expect(text).toContain('0:41 ↻ charge-card   attempt 2/5, next in 1.4s: card processor timed out')
    expect(text).toContain('0:41 ✖ charge-card   dead after attempt 2: card')
    expect(text).toContain('0:41 ‖ charge-card   parked 3 times: card')
  })

  test('ends with how to stop it, or with what the stop waits for', () => {
    expect(lines.at(-1)).toBe(' Ctrl-C stops cleanly')
    expect(drawn({ ...snapshot, stopping: true }, { columns: 80, rows: 24 }).at(-1)).toContain('Stopping')
  })

  test('cuts nothing at 80 columns but reasons', () => {
    const cutLines = drawn(snapshot, { columns: 79, rows: 24 }).filter((line) => line.endsWith('…'))
    expect(cutLines).toEqual([])
  })

  test.for([
    [80, 24],
    [120, 40],
    [200, 60],
    [60, 14],
    [20, 5],
    [1, 1],
  ] as const)('fits into %s columns', ([columns, rows]) => {
    const fitted = drawn(snapshot, { columns, rows })
    expect(fitted.length).toBeLessThanOrEqual(rows)
    for (const line of fitted) expect(Array.from(line).length).toBeLessThanOrEqual(columns)
    expect(fitted.at(-1)).toContain(columns < 20 ? '…' : 'Ctrl-C')
  })

  test('does not change its height with what there is to show', () => {
    const size = { columns: 80, rows: 24 }
    const quiet = { ...snapshot, slots: snapshot.slots.map(() => null), troubles: [], wait: null, run: null }
    expect(drawn(quiet, size)).toHaveLength(lines.length)
    expect(drawn(quiet, size)).toHaveLength(
      drawn({ ...snapshot, troubles: Array(30).fill(trouble) }, size).length,
    )
  })
})

test('the plain line has the same figures', () => {
  expect(plainLine(snapshot)).toBe(
    ' 1:02  in 12.0/s  out 11.4/s  failing 4.2%  scheduled 2  ready 4  running 6  completed 2468  retried 31  dead 4  ' +
      'wait p50/p95 2ms/14ms  run p50/p95 92ms/1.6s',
  )
})

describe('the summary', () => {
  test('accounts for every job', () => {
    expect(summary(snapshot)).toEqual([
      'Stopped after 1m 2s.',
      '  enqueued 2,484   completed 2,468   retried 31   parked 7   dead 4   released 2',
      '  2,484 enqueued = 2,468 completed + 4 dead + 12 still waiting: none lost',
    ])
  })

  test('does not hide one that is missing', () => {
    const totals = { ...snapshot.totals, enqueued: 2_485 }
    expect(summary({ ...snapshot, totals }).at(-1)).toContain('1 not accounted for')
  })
})
