import { describe, expect, test } from 'vitest'
import { check } from './check.ts'
import { explain } from './explain.ts'
import type { HistoryEvent } from './history.ts'
import { BOUNDS, broken } from './testing/broken.ts'
import { enqueued, flush, LEASE_MS, settled, Story } from './testing/story.ts'

describe('the history itself', () => {
  test('begins, goes on in order, and answers what was asked', () => {
    expect(broken(new Story().enqueue('a').end())).toEqual([])
  })

  test.each<[string, (story: Story) => readonly HistoryEvent[]]>([
    ['has no beginning', (story) => story.events.slice(1)],
    ['goes back in seq', ({ events }) => [...events, { ...events.at(-1)!, seq: 0 }]],
    ['goes back in time', ({ events }) => [...events, { type: 'phase', phase: 'healed', seq: 99, t: -1 }]],
    ['answers what nobody asked', (story) => story.answer(7, { kind: 'pause' }).events],
    ['answers another question', (story) => story.call({ kind: 'rescue' }, { kind: 'retire' }).events],
    [
      'answers half',
      (story) => story.call(flush([enqueued('b')], 'f'), { kind: 'enqueue', jobs: [] }).events,
    ],
    [
      'has moves that it denies',
      () => [...new Story({ moves: false }).events, moveOf(new Story().birth('a'))],
    ],
  ])('is refused when it %s', (_, tell) => {
    expect(broken(tell(new Story().enqueue('a')))).toContain('history')
  })

  function moveOf({ events }: Story): HistoryEvent {
    return events.find((event) => event.type === 'move')!
  }
})

describe('a verdict', () => {
  test('counts the faults of the run', () => {
    const story = new Story().register('w').enqueue('a').write({ type: 'fault', kind: 'drop' })
    story.claim('w', ['a'])
    const stale = story.settleCall('a', 'completed')
    story.run('a', 'start').run('a', 'end').wait(LEASE_MS).rescue(['a']).call(stale, settled('lost'))
    story.unknown(story.invoke(stale))
    const { counted } = check(story.events, BOUNDS)
    expect(counted).toEqual({
      events: story.events.length,
      calls: 6,
      unknown: 1,
      failed: 0,
      born: 1,
      claims: 1,
      runs: 1,
      rescued: 1,
      settlesWritten: 0,
      settlesAlready: 0,
      staleSettlesRefused: 1,
      faults: { drop: 1 },
    })
  })

  test('reports each rule and job once, keeps as many violations as asked, and counts the rest', () => {
    const story = new Story()
    for (const id of ['a', 'b', 'c'])
      story.birth(id).move(id, 'promote', 'ready').move(id, 'promote', 'ready')
    const { violations, violationCount } = check(story.events, { ...BOUNDS, maxViolations: 2 })
    expect(violations.map(({ rule, job }) => `${rule} ${job}`)).toEqual(['S2 a', 'S11 a'])
    expect(violationCount).toBe(6)
  })

  test('names the event at which it showed', () => {
    const story = new Story().enqueue('a')
    const seq = story.events.length
    story.move('a', 'promote', 'ready').enqueue('b')
    const [violation] = check(story.events, BOUNDS).violations
    expect(violation?.seq).toBe(seq)
    expect(broken(story.events.slice(0, seq))).toEqual([])
    expect(broken(story.events.slice(0, seq + 1))).toEqual(['S11 a'])
  })

  test('of a history that can be read once only has what the rule points at', () => {
    const story = new Story().enqueue('a').move('a', 'promote', 'ready')
    const once = story.events.values()
    const [violation] = check(once, BOUNDS).violations
    expect(violation?.events.map(({ type }) => type)).toEqual(['move', 'move'])
  })
})

describe('an explanation', () => {
  test('says the rule in words, the job, and its story, without the other jobs', () => {
    const story = new Story().register('w')
    const op = story.invoke(flush([enqueued('a'), enqueued('b')], 'f'))
    const inserted = (id: string) => ({ id, outcome: 'inserted' }) as const
    story
      .birth('a')
      .birth('b')
      .answer(op, { kind: 'enqueue', jobs: [inserted('a'), inserted('b')] })
    const token = story.claim('w', ['b', 'a'])
    story.run('a', 'start').settle('b', 'completed').wait(20)
    story.move('a', 'settle', 'completed', { settlement: 'completed', token: token + 1 })
    const [violation] = check(story.events, BOUNDS).violations
    expect(explain(violation!)).toBe(
      [
        'S4: a commit only with the current token',
        '  job a: settle under token 2 of worker w, but token 1 of worker w is the current one',
        '          3          0 ms  n1 → #1 enqueue, flush f: a in q {"of":"a"}',
        '          4          0 ms  store: ∅ → ready by enqueue, attempt 0, queue q, rank 0, due 0',
        '          6          0 ms  n1 ← #1 inserted a',
        '          9          0 ms  store: ready → running by claim, token 1, worker w, attempt 1, queue q, rank 0, due 0',
        '         10          0 ms  n1 ← #2 lease 1: a (attempt 1)',
        '         11          0 ms  n1 handler start, token 1, attempt 1',
        '         15         20 ms  store: running → completed by settle (completed), token 2, worker w, attempt 1, queue q, rank 0, due 0',
      ].join('\n'),
    )
  })

  test('has words for every event', () => {
    const story = new Story().register('w').started('n1').enqueue('a').pause('q').heartbeat('w')
    story.failed(story.invoke({ kind: 'change', action: 'replay', jobs: null }))
    story.write({ type: 'lease', what: 'gone', worker: 'w', expiresAt: null })
    story.call({ kind: 'cancel', job: 'a' }, { kind: 'cancel', outcome: 'missing' })
    story
      .call({ kind: 'prune' }, { kind: 'prune', pruned: 1 })
      .rescue([])
      .write({ type: 'store', what: 'down' })
    story.write({ type: 'stop', what: 'begin', node: 'n1', graceMs: 5 }).end()
    const text = explain({ rule: 'L4', job: null, text: 'it hangs', seq: 1, events: story.events })
    expect(text.split('\n')).toHaveLength(story.events.length + 2)
    expect(text).not.toContain('undefined')
  })
})
