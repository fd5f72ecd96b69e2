import { describe, expect, test } from 'vitest'
import { broken } from './testing/broken.ts'
import { enqueued, flush, Story } from './testing/story.ts'

describe('S1: an acked enqueue is never lost', () => {
  test('live, final, pruned and discarded jobs are all accounted for', () => {
    const story = new Story().register('w').enqueue('live').enqueue('done').enqueue('old').enqueue('dead')
    story.claim('w', ['done', 'old', 'dead'])
    story.settle('done', 'completed').settle('old', 'completed').settle('dead', 'dead')
    story.move('old', 'prune', null).move('dead', 'discard', null)
    expect(broken(story.end())).toEqual([])
  })

  test('a job that was acked but never written is lost', () => {
    const story = new Story()
    const op = story.invoke(flush([enqueued('a')], 'f'))
    story.answer(op, { kind: 'enqueue', jobs: [{ id: 'a', outcome: 'inserted' }] })
    expect(broken(story)).toEqual(['S1 a'])
  })

  test('a job that was not acked may be missing', () => {
    const story = new Story()
    story.unknown(story.invoke(flush([enqueued('a')], 'f')))
    expect(broken(story.end())).toEqual([])
  })

  test('a job that is missing at the end, live or final, is lost', () => {
    const story = new Story().register('w').enqueue('a').enqueue('b')
    story.claim('w', ['b'])
    story.settle('b', 'completed')
    story.jobs.clear()
    expect(broken(story.end())).toEqual(['S1 a', 'S1 b'])
  })

  test('a live job must not be pruned', () => {
    const story = new Story().enqueue('a')
    // If its starting state were reported correctly, it would also be an illegal move.
    story.move('a', 'prune', null, { from: 'completed' })
    expect(broken(story.end())).toEqual(['S1 a'])
  })

  test('without moves the answers and the last snapshot tell', () => {
    const story = new Story({ moves: false }).register('w').enqueue('a').enqueue('b')
    story.claim('w', ['b'])
    story.settle('b', 'completed')
    story.jobs.clear()
    expect(broken(story.end())).toEqual(['S1 a', 'S1 b'])
  })

  test('without moves a finished job may be missing where a prune is on record', () => {
    const story = new Story({ moves: false }).register('w').enqueue('a')
    story.claim('w', ['a'])
    story.settle('a', 'completed').call({ kind: 'prune' }, { kind: 'prune', pruned: 1 })
    story.jobs.clear()
    expect(broken(story.end())).toEqual([])
  })
})

describe('S2: nothing appears that nobody enqueued', () => {
  test('a job of a flush whose answer is unknown may appear later', () => {
    const story = new Story()
    story.unknown(story.invoke(flush([enqueued('a')], 'f')))
    story.wait(5_000).birth('a')
    expect(broken(story.end())).toEqual([])
  })

  test('a job that nobody asked for', () => {
    expect(broken(new Story().birth('ghost').end())).toEqual(['S2 ghost'])
  })

  test('a job of a flush that was refused', () => {
    const story = new Story()
    story.failed(story.invoke(flush([enqueued('a')], 'f')))
    expect(broken(story.birth('a').end())).toEqual(['S2 a'])
  })

  test('a move of a job that never existed', () => {
    const story = new Story().register('w')
    story.move('ghost', 'promote', 'ready', { from: 'scheduled' })
    expect(broken(story.end())).toEqual(['S2 ghost'])
  })

  test('a job that only the snapshot knows', () => {
    const story = new Story()
    const silent = new Story({ moves: false }).birth('ghost')
    for (const [id, standing] of silent.jobs) story.jobs.set(id, standing)
    expect(broken(story.end())).toEqual(['S2 ghost'])
  })

  test('a claim whose answer has a job that the store never leased', () => {
    const story = new Story().register('w').enqueue('a')
    const op = story.invoke({
      kind: 'cycle',
      worker: 'w',
      settles: [],
      claim: { queue: 'q', limit: 1, suspects: true },
    })
    const lease = { token: 1, jobs: [{ id: 'a', attempt: 1, crashes: 0 }] }
    story.answer(op, { kind: 'cycle', alive: true, settled: [], leases: [lease] })
    expect(broken(story)).toEqual(['S2 a'])
  })

  test('a handler that runs a job that no claim returned', () => {
    const story = new Story().register('w').enqueue('a')
    story.grant('w', ['a'])
    expect(broken(story.run('a', 'start'))).toEqual(['S2 a'])
  })

  test('without moves: a claim of a job that nobody enqueued', () => {
    const story = new Story({ moves: false }).register('w')
    story.claim('w', ['ghost'])
    expect(broken(story)).toEqual(['S2 ghost'])
  })
})

describe('S12: the payload read is the payload written', () => {
  const unique = { key: 'k', hold: 'unfinished', onConflict: 'replace' } as const

  test('a handler sees what was enqueued', () => {
    const story = new Story().register('w').enqueue('a', { payload: '[1]' })
    story.claim('w', ['a'])
    expect(broken(story.run('a', 'start', { payload: '[1]' }).run('a', 'end'))).toEqual([])
  })

  test('a handler that sees something else', () => {
    const story = new Story().register('w').enqueue('a', { payload: '[1]' })
    story.claim('w', ['a'])
    expect(broken(story.run('a', 'start', { payload: '[2]' }))).toEqual(['S12 a'])
  })

  test('a store that writes something else', () => {
    const story = new Story()
    story.invoke(flush([enqueued('a')], 'f'))
    expect(broken(story.birth('a', { payload: '[2]' }))).toEqual(['S12 a'])
  })

  test('after a replace it is the new payload that counts', () => {
    const replaced = (seen: string): string[] => {
      const story = new Story().register('w').enqueue('a', { payload: '[1]', unique })
      const op = story.invoke(flush([enqueued('b', { payload: '[2]', unique })], 'f'))
      story.move('a', 'replace', 'ready', { payload: '[2]' })
      story.answer(op, { kind: 'enqueue', jobs: [{ id: 'a', outcome: 'replaced' }] })
      story.claim('w', ['a'])
      return broken(story.run('a', 'start', { payload: seen }))
    }
    expect(replaced('[2]')).toEqual([])
    expect(replaced('[1]')).toEqual(['S12 a'])
  })

  test('a replace with what nobody asked for', () => {
    const story = new Story().enqueue('a', { payload: '[1]', unique })
    expect(broken(story.move('a', 'replace', 'ready', { payload: '[3]' }))).toEqual(['S12 a'])
  })

  test('without moves either payload may be seen, but no third', () => {
    const seen = (payload: string): string[] => {
      const story = new Story({ moves: false }).register('w').enqueue('a', { payload: '[1]', unique })
      story.unknown(story.invoke(flush([enqueued('b', { payload: '[2]', unique })], 'f')))
      story.claim('w', ['a'])
      return broken(story.run('a', 'start', { payload }))
    }
    expect(seen('[1]')).toEqual([])
    expect(seen('[2]')).toEqual([])
    expect(seen('[3]')).toEqual(['S12 a'])
  })
})

describe('S14: what is enqueued again is the same job', () => {
  const inserted = { kind: 'enqueue', jobs: [{ id: 'a', outcome: 'inserted' }] } as const

  test('a repeated flush is answered as before and written once', () => {
    const story = new Story()
    story.unknown(story.invoke(flush([enqueued('a')], 'f')))
    story.birth('a').answer(story.invoke(flush([enqueued('a')], 'f')), inserted)
    expect(broken(story.end())).toEqual([])
  })

  test('a flush that is written twice', () => {
    const story = new Story()
    story.unknown(story.invoke(flush([enqueued('a')], 'f')))
    story.birth('a')
    const op = story.invoke(flush([enqueued('a')], 'f'))
    story.jobs.delete('a')
    expect(broken(story.birth('a').answer(op, inserted).end())).toEqual(['S14 a'])
  })

  test('a flush that is written again when its job is finished, or even forgotten', () => {
    for (const forgotten of [false, true]) {
      const story = new Story().register('w')
      story.unknown(story.invoke(flush([enqueued('a')], 'f')))
      story.birth('a').claim('w', ['a'])
      story.settle('a', 'completed')
      if (forgotten) story.move('a', 'prune', null)
      story.jobs.delete('a')
      story.invoke(flush([enqueued('a')], 'f'))
      expect(broken(story.birth('a').end())).toEqual(['S14 a'])
    }
  })

  test('a repeat that is answered with another id', () => {
    const story = new Story()
    story.answer(story.invoke(flush([enqueued('a')], 'f')), inserted)
    const op = story.invoke(flush([enqueued('a')], 'f'))
    story.answer(op, { kind: 'enqueue', jobs: [{ id: 'b', outcome: 'duplicate' }] })
    expect(broken(story.birth('a'))).toContain('S14 a')
  })

  test('a repeat with other jobs under the same flush id', () => {
    const story = new Story()
    story.unknown(story.invoke(flush([enqueued('a')], 'f')))
    story.invoke(flush([enqueued('b')], 'f'))
    expect(broken(story)).toEqual(['S14 b'])
  })

  test('one intent that became two jobs, under new ids', () => {
    for (const moves of [true, false]) {
      const story = new Story({ moves }).enqueue('a', { intent: 'i1' }).enqueue('b', { intent: 'i1' })
      expect(broken(story.enqueue('c', { intent: 'i2' }).end())).toEqual(['S14 b'])
    }
  })
})

describe('S15: counters equal a recount', () => {
  test('a counter that is off by one, or of a queue without jobs', () => {
    const story = new Story().enqueue('a')
    const jobs = [
      { id: 'a', queue: 'q', state: 'ready', attempt: 0, crashes: 0, token: null, worker: null },
    ] as const
    expect(broken(story.write({ type: 'snapshot', jobs, counters: { q: { ready: 1, dead: 0 } } }))).toEqual(
      [],
    )
    expect(broken(story.write({ type: 'snapshot', jobs, counters: null }))).toEqual([])
    expect(broken(story.write({ type: 'snapshot', jobs, counters: { q: { ready: 2 } } }))).toEqual(['S15'])
    const stale = new Story().write({ type: 'snapshot', jobs: [], counters: { old: { running: 1 } } })
    expect(broken(stale)).toEqual(['S15'])
  })
})
