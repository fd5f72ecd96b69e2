import { describe, expect, test } from 'vitest'
import type { UniqueSpec } from './history.ts'
import { broken } from './testing/broken.ts'
import { claimCall, enqueued, flush, LEASE_MS, Story } from './testing/story.ts'

function finished(to: 'completed' | 'dead', { moves = true } = {}): Story {
  const story = new Story({ moves }).register('w').enqueue('a')
  story.claim('w', ['a'])
  return story.settle('a', to)
}

function replay(story: Story): Story {
  const op = story.invoke({ kind: 'change', action: 'replay', jobs: null })
  story.move('a', 'replay', 'ready', { attempt: 0, crashes: 0 })
  return story.answer(op, { kind: 'change', changed: 1 })
}

describe('S6: final is final', () => {
  test('a dead job is replayed by a call on record', () => {
    expect(broken(replay(finished('dead')).end())).toEqual([])
  })

  test('a replay that no call asked for', () => {
    const story = finished('dead').move('a', 'replay', 'ready', { attempt: 0, crashes: 0 })
    expect(broken(story.end())).toEqual(['S6 a'])
  })

  test('a completed job is not even replayed', () => {
    const story = finished('completed')
    story.invoke({ kind: 'change', action: 'replay', jobs: ['a'] })
    story.move('a', 'replay', 'ready', { from: 'dead', attempt: 0, crashes: 0 })
    expect(broken(story.end())).toEqual(['S6 a'])
  })

  test('a slow rescuer that overwrites a job that has finished meanwhile', () => {
    const story = finished('completed').wait(LEASE_MS)
    story.move('a', 'rescue', 'scheduled', { from: 'running', token: 1, worker: 'w', attempt: 0, crashes: 1 })
    expect(broken(story.end())).toEqual(['S6 a'])
  })

  test('a job that comes back after it was forgotten', () => {
    const story = finished('completed').move('a', 'prune', null)
    story.move('a', 'promote', 'ready', { from: 'scheduled' })
    expect(broken(story)).toEqual(['S6 a'])
  })

  test('without moves: a claim after a client knew that the job was final', () => {
    for (const to of ['completed', 'dead'] as const) {
      const story = finished(to, { moves: false })
      story.claim('w', ['a'])
      expect(broken(story)).toEqual(['S6 a'])
    }
    const replayed = replay(finished('dead', { moves: false }))
    replayed.claim('w', ['a'])
    expect(broken(replayed)).toEqual([])
  })
})

describe('S7: a unique key has one live holder', () => {
  const unfinished: UniqueSpec = { key: 'k', hold: 'unfinished', onConflict: 'ignore' }
  const ready: UniqueSpec = { key: 'k', hold: 'ready', onConflict: 'ignore' }
  const timed: UniqueSpec = { key: 'k', hold: 500, onConflict: 'ignore' }

  function held(unique: UniqueSpec, { moves = true } = {}): Story {
    return new Story({ moves }).register('w').enqueue('a', { unique })
  }

  function duplicate(story: Story, unique: UniqueSpec): Story {
    const op = story.invoke(flush([enqueued('b', { unique })], 'f'))
    return story.answer(op, { kind: 'enqueue', jobs: [{ id: 'a', outcome: 'duplicate' }] })
  }

  test('the key is free when its holder is final, claimed, or its time is over', () => {
    const final = held(unfinished)
    final.claim('w', ['a'])
    final.settle('a', 'completed').enqueue('b', { unique: unfinished })
    expect(broken(final.end())).toEqual([])

    const claimed = held(ready)
    claimed.claim('w', ['a'])
    claimed.enqueue('b', { unique: ready }).settle('a', 'release')
    expect(broken(claimed.end())).toEqual([])

    expect(broken(held(timed).wait(500).enqueue('b', { unique: timed }).end())).toEqual([])
  })

  test('a second holder while the first one holds it', () => {
    expect(broken(held(unfinished).enqueue('b', { unique: unfinished }))).toEqual(['S7 b'])
    expect(broken(held(ready).enqueue('b', { unique: ready }))).toEqual(['S7 b'])
    expect(broken(held(timed).wait(499).enqueue('b', { unique: timed }))).toEqual(['S7 b'])
    const running = held(unfinished)
    running.claim('w', ['a'])
    expect(broken(running.enqueue('b', { unique: unfinished }))).toEqual(['S7 b'])
  })

  test('a key that is held for a time outlives its holder', () => {
    const story = held(timed)
    story.claim('w', ['a'])
    story.settle('a', 'completed').move('a', 'prune', null)
    expect(broken(duplicate(story, timed).end())).toEqual([])
    expect(broken(story.enqueue('c', { unique: timed }))).toEqual(['S7 c'])
  })

  test('a store that frees the key too early or too late, by its own word', () => {
    const early = held(unfinished)
    early.move('a', 'claim', 'running', {
      token: 1,
      worker: 'w',
      attempt: 1,
      unique: { key: 'k', hold: 'unfinished', held: false },
    })
    expect(broken(early)).toEqual(['S7 a'])
    const late = held(unfinished)
    late.claim('w', ['a'])
    const unique = { key: 'k', hold: 'unfinished', held: true } as const
    expect(broken(late.move('a', 'settle', 'dead', { settlement: 'dead', unique }))).toEqual(['S7 a'])
  })

  test('a dead job whose key turns a later enqueue away', () => {
    for (const moves of [true, false]) {
      for (const to of ['dead', 'completed'] as const) {
        const story = held(unfinished, { moves })
        story.claim('w', ['a'])
        story.settle('a', to)
        expect(broken(duplicate(story, unfinished))).toEqual(['S7 a'])
      }
    }
  })

  test('a duplicate of a job that finished only after the enqueue was sent is fine', () => {
    const story = held(unfinished)
    story.claim('w', ['a'])
    const op = story.invoke(flush([enqueued('b', { unique: unfinished })], 'f'))
    story.settle('a', 'completed')
    story.answer(op, { kind: 'enqueue', jobs: [{ id: 'a', outcome: 'duplicate' }] })
    expect(broken(story.end())).toEqual([])
  })

  test('a duplicate is fine for a moment, where a store reads its clock before it commits', () => {
    for (const to of ['dead', 'completed'] as const) {
      const later = (ms: number): Story => {
        const story = held(unfinished)
        story.claim('w', ['a'])
        return duplicate(story.settle('a', to).wait(ms), unfinished)
      }
      expect(broken(later(10), { visibleMs: 50 })).toEqual([])
      expect(broken(later(100), { visibleMs: 50 })).toEqual(['S7 a'])
    }
  })

  test('a repeated flush is still a duplicate of a job that has finished since', () => {
    for (const moves of [true, false]) {
      const story = held(unfinished, { moves })
      story.unknown(story.invoke(flush([enqueued('b', { unique: unfinished })], 'f')))
      story.claim('w', ['a'])
      expect(broken(duplicate(story.settle('a', 'completed'), unfinished))).toEqual([])
    }
  })

  test('without moves: a replace may have given the holder another rule', () => {
    const story = held(unfinished, { moves: false })
    const replace: UniqueSpec = { key: 'k', hold: 10, onConflict: 'replace' }
    story.unknown(story.invoke(flush([enqueued('b', { unique: replace })], 'f')))
    expect(broken(story.wait(99).enqueue('c', { unique: unfinished }))).toEqual([])
  })

  test('a replay that takes a key which another one holds by now', () => {
    const story = held(unfinished)
    story.claim('w', ['a'])
    story.settle('a', 'dead').enqueue('b', { unique: unfinished })
    story.invoke({ kind: 'change', action: 'replay', jobs: ['a'] })
    const unique = { key: 'k', hold: 'unfinished', held: true } as const
    expect(broken(story.move('a', 'replay', 'ready', { attempt: 0, unique }))).toEqual(['S7 a'])
  })

  test('a replay takes a key that is held for a time anew, and its time starts again', () => {
    const replayed = (ms: number): string[] => {
      const story = held(timed)
      story.claim('w', ['a'])
      story.settle('a', 'dead').wait(400)
      return broken(replay(story).wait(ms).enqueue('b', { unique: timed }))
    }
    expect(replayed(500)).toEqual([])
    expect(replayed(499)).toEqual(['S7 b'])
  })

  test('a time that runs out while a step is under way', () => {
    const moved = (afterMs: number): Story =>
      held(timed)
        .wait(afterMs)
        .move('a', 'reschedule', 'scheduled', { unique: { ...timed, held: true } })
    expect(broken(moved(520), { visibleMs: 50 })).toEqual([])
    expect(broken(moved(600), { visibleMs: 50 })).toEqual(['S7 a'])
  })

  test('without moves: a worker whose calls are not on record may have finished the first', () => {
    const silent = held(unfinished, { moves: false }).started('elsewhere')
    expect(broken(silent.enqueue('b', { unique: unfinished }).end())).toEqual([])
  })

  test('without moves: a second one got the key although nothing can have finished the first', () => {
    const story = held(unfinished, { moves: false })
    expect(broken(story.enqueue('b', { unique: unfinished }))).toEqual(['S7 b'])
    const perhaps = held(unfinished, { moves: false })
    perhaps.unknown(perhaps.invoke({ kind: 'cancel', job: 'a' }))
    expect(broken(perhaps.enqueue('b', { unique: unfinished }))).toEqual([])
  })
})

describe('S11: only legal transitions', () => {
  test('a job’s whole life', () => {
    const story = new Story()
      .register('w')
      .enqueue('a', { due: { inMs: 100 } })
      .wait(100)
      .promote('a')
    story.move('a', 'reschedule', 'scheduled', { dueAt: 300, rank: 300 }).wait(200).promote('a')
    story.move('a', 'admit', 'blocked').move('a', 'admit', 'ready')
    story.claim('w', ['a'])
    story.settle('a', 'retry').move('a', 'cancel', 'cancelled').move('a', 'prune', null)
    expect(broken(story.end())).toEqual([])
  })

  test('a move that is not in the table', () => {
    expect(broken(new Story().enqueue('a').move('a', 'settle', 'completed', { token: 1 }))).toContain('S11 a')
    expect(broken(new Story().enqueue('a').move('a', 'promote', 'ready'))).toEqual(['S11 a'])
    expect(broken(new Story().enqueue('a', { due: { inMs: 9 } }).move('a', 'promote', 'running'))).toEqual([
      'S11 a',
    ])
  })

  test('a settlement that became something else', () => {
    const story = new Story().register('w').enqueue('a')
    story.claim('w', ['a'])
    expect(broken(story.move('a', 'settle', 'dead', { settlement: 'completed' }))).toEqual(['S11 a'])
  })

  test('a cancel that waited for a running job wins over what would bring it back', () => {
    const story = new Story().register('w').enqueue('a')
    story.claim('w', ['a'])
    expect(broken(story.move('a', 'settle', 'cancelled', { settlement: 'retry' }).end())).toEqual([])
  })

  test('a move that does not start where the last one ended', () => {
    const story = new Story().register('w').enqueue('a', { due: { inMs: 50 } })
    story.jobs.set('a', { ...story.jobs.get('a')!, to: 'ready' })
    story.claim('w', ['a'])
    expect(broken(story)).toEqual(['S11 a'])
  })

  test('a job that is made ready before it is due', () => {
    const story = new Story().enqueue('a', { due: { inMs: 100 } })
    expect(broken(story.wait(90).promote('a'))).toEqual(['S11 a'])
    const skewed = new Story()
    skewed.invoke(flush([enqueued('a', { due: { inMs: 100 } })], 'f'))
    expect(broken(skewed.move('a', 'enqueue', 'ready', { dueAt: 100 }))).toEqual(['S11 a'])
  })

  test('a state that no move led to', () => {
    const story = new Story().enqueue('a')
    story.jobs.set('a', { ...story.jobs.get('a')!, to: 'dead' })
    expect(broken(story.end())).toEqual(['S11 a'])
  })
})

describe('S16: after an acked pause or cancel, no later claim', () => {
  test('a claim that comes before the pause takes effect, or after the resume', () => {
    const story = new Story().register('w').enqueue('a').enqueue('b')
    const op = story.invoke({ kind: 'pause', queue: 'q' })
    story.claim('w', ['a'])
    story.setting('q', true).answer(op, { kind: 'pause' })
    const resume = story.invoke({ kind: 'resume', queue: 'q' })
    story.setting('q', false)
    story.claim('w', ['b'])
    expect(broken(story.answer(resume, { kind: 'resume' }).end())).toEqual([])
  })

  test('a claim from a paused queue, with or without moves', () => {
    for (const moves of [true, false]) {
      const story = new Story({ moves }).register('w').enqueue('a').pause('q')
      story.claim('w', ['a'])
      expect(broken(story)).toEqual(['S16 a'])
    }
  })

  test('without moves: a resume that may have come through excuses it', () => {
    const story = new Story({ moves: false }).register('w').enqueue('a').pause('q')
    story.unknown(story.invoke({ kind: 'resume', queue: 'q' }))
    story.claim('w', ['a'])
    expect(broken(story)).toEqual([])
  })

  test('a pause that is acked without effect', () => {
    const story = new Story()
    expect(broken(story.call({ kind: 'pause', queue: 'q' }, { kind: 'pause' }))).toEqual(['S16'])
  })

  test('a job that is claimed after its cancel was acked', () => {
    for (const moves of [true, false]) {
      for (const outcome of ['cancelled', 'requested'] as const) {
        const story = new Story({ moves }).register('w').enqueue('a')
        story.claim('w', ['a'])
        story.call({ kind: 'cancel', job: 'a' }, { kind: 'cancel', outcome })
        story.settle('a', 'release').claim('w', ['a'])
        expect(broken(story)).toEqual(['S16 a'])
      }
    }
  })

  test('a cancel that came too late, and one that a replay took back', () => {
    const late = finished('dead').call({ kind: 'cancel', job: 'a' }, { kind: 'cancel', outcome: 'final' })
    replay(late).claim('w', ['a'])
    expect(broken(late.end())).toEqual([])
    const story = new Story().register('w').enqueue('a')
    story.claim('w', ['a'])
    story.call({ kind: 'cancel', job: 'a' }, { kind: 'cancel', outcome: 'requested' }).settle('a', 'dead')
    replay(story).claim('w', ['a'])
    expect(broken(story.end())).toEqual([])
  })
})

describe('S17: a claimable job is not overtaken for longer than the bound', () => {
  function overtaken(afterMs: number, between: (story: Story) => void = () => {}): string[] {
    const story = new Story().register('w').enqueue('first')
    between(story)
    story.wait(afterMs).enqueue('second')
    const op = story.invoke(claimCall('w'))
    const token = story.grant('w', ['second'])
    return broken(story.answer(op, story.leaseReply(token, ['second'])))
  }

  test('up to the bound it may be, beyond it must not', () => {
    expect(overtaken(300)).toEqual([])
    expect(overtaken(301)).toEqual(['S17 first'])
  })

  test('nor if it is claimed afterwards, cancelled, or never claimed', () => {
    const left = (leave: (story: Story) => void): string[] => {
      const story = new Story().register('w').enqueue('first').wait(1_000).enqueue('second')
      story.claim('w', ['second'])
      leave(story)
      return broken(story)
    }
    expect(left((story) => story.claim('w', ['first']))).toEqual(['S17 first'])
    expect(left((story) => story.move('first', 'cancel', 'cancelled'))).toEqual(['S17 first'])
    expect(left(() => {})).toEqual(['S17 first'])
  })

  test('it may be by a later claim that is written down before its own', () => {
    const story = new Story().register('w').enqueue('first').wait(1_000).enqueue('second')
    const [one, two] = [story.invoke(claimCall('w')), story.invoke(claimCall('w'))]
    const [earlier, later] = [1, 2]
    story.grant('w', ['second'], later)
    story.grant('w', ['first'], earlier)
    story.answer(two, story.leaseReply(later, ['second']))
    story.answer(one, story.leaseReply(earlier, ['first']))
    expect(broken(story)).toEqual([])
  })

  test('a lower rank is no overtaking', () => {
    const story = new Story().register('w').enqueue('first').wait(1_000)
    story.enqueue('urgent', { headStartMs: 5_000 })
    story.claim('w', ['urgent', 'first'])
    expect(broken(story.end())).toEqual([])
  })

  test('while the queue is paused it is not claimable', () => {
    const resumed = (afterMs: number): string[] =>
      overtaken(afterMs, (story) => {
        story.setting('q', true).wait(1_000)
        story.invoke({ kind: 'resume', queue: 'q' })
        story.setting('q', false)
      })
    expect(resumed(300)).toEqual([])
    expect(resumed(301)).toEqual(['S17 first'])
  })

  test('suspects are exempt, on both sides', () => {
    const story = new Story().register('w').enqueue('a')
    story.claim('w', ['a'])
    story.wait(LEASE_MS).rescue(['a']).promote('a').wait(1_000).enqueue('b').heartbeat('w')
    story.claim('w', ['b'])
    expect(broken(story.end())).toEqual([])
  })

  test('what has left the queue, or stands in another, is not overtaken', () => {
    expect(overtaken(1_000, (story) => story.move('first', 'cancel', 'cancelled'))).toEqual([])
    const story = new Story().register('w').enqueue('other', { queue: 'r' }).wait(1_000).enqueue('b')
    story.claim('w', ['b'])
    expect(broken(story.end())).toEqual([])
  })
})
