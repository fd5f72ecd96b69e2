import { describe, expect, test } from 'vitest'
import { broken } from './testing/broken.ts'
import { claimCall, LEASE_MS, settled, Story } from './testing/story.ts'

/** A job that worker w holds under a lease. */
function leased({ moves = true } = {}): Story {
  const story = new Story({ moves }).register('w').register('x', 'n2').enqueue('a')
  story.claim('w', ['a'])
  return story
}

describe('S3: no two live leases', () => {
  test('a job that came back may be claimed again', () => {
    for (const moves of [true, false]) {
      const story = leased({ moves }).settle('a', 'release')
      story.claim('x', ['a'], 'n2')
      expect(broken(story.end())).toEqual([])
    }
  })

  test('a running job that is claimed once more', () => {
    const story = leased()
    story.jobs.set('a', { ...story.jobs.get('a')!, to: 'ready' })
    story.claim('x', ['a'], 'n2')
    expect(broken(story.end())).toEqual(['S3 a'])
  })

  test('without moves: a second claim although nothing ended the first lease', () => {
    const story = leased({ moves: false })
    story.claim('x', ['a'], 'n2')
    expect(broken(story)).toEqual(['S3 a'])
  })

  test('without moves: a settle or rescue without an answer may have ended it', () => {
    const settledPerhaps = leased({ moves: false })
    settledPerhaps.unknown(settledPerhaps.invoke(settledPerhaps.settleCall('a', 'release')))
    settledPerhaps.claim('x', ['a'], 'n2')
    expect(broken(settledPerhaps)).toEqual([])

    const rescuedPerhaps = leased({ moves: false })
    rescuedPerhaps.unknown(rescuedPerhaps.invoke({ kind: 'rescue' }))
    rescuedPerhaps.claim('x', ['a'], 'n2')
    expect(broken(rescuedPerhaps)).toEqual([])
  })

  test('without moves: the answer to a rescue may overtake the answer to the claim', () => {
    const story = new Story({ moves: false }).register('w').register('x', 'n2').enqueue('a')
    const op = story.invoke(claimCall('w'))
    const token = story.grant('w', ['a'])
    const late = story.leaseReply(token, ['a'])
    story
      .wait(LEASE_MS + 1)
      .rescue(['a'])
      .promote('a')
      .answer(op, late)
    story.claim('x', ['a'], 'n2')
    expect(broken(story)).toEqual([])
  })

  test('a lease is rescued when its worker has expired, and not a moment before', () => {
    const rescuedAfter = (ms: number): string[] => {
      const story = leased().wait(500).heartbeat('w')
      return broken(story.wait(ms).rescue(['a']).end())
    }
    expect(rescuedAfter(LEASE_MS)).toEqual([])
    expect(rescuedAfter(LEASE_MS - 1)).toEqual(['S3 a'])
  })

  test('a renewal that was not answered proves nothing', () => {
    const story = leased().wait(500)
    story.unknown(story.invoke({ kind: 'heartbeat', worker: 'w', undelivered: [] }))
    expect(broken(story.wait(500).rescue(['a']).end())).toEqual([])
  })

  test('a worker that retires gives its leases up at once', () => {
    const story = leased().call({ kind: 'retire', worker: 'w' }, { kind: 'retire' })
    expect(broken(story.rescue(['a']).end())).toEqual([])
  })

  test('the store’s own lease events make the expiry exact', () => {
    const rescuedAt = (ms: number): string[] => {
      const story = leased()
      story.write({ type: 'lease', what: 'registered', worker: 'w', expiresAt: LEASE_MS }).wait(900)
      const op = story.invoke({ kind: 'heartbeat', worker: 'w', undelivered: [] })
      story.write({ type: 'lease', what: 'renewed', worker: 'w', expiresAt: 900 + LEASE_MS })
      story.unknown(op)
      return broken(
        story
          .wait(ms - 900)
          .rescue(['a'])
          .end(),
      )
    }
    expect(rescuedAt(900 + LEASE_MS)).toEqual([])
    expect(rescuedAt(899 + LEASE_MS)).toEqual(['S3 a'])
  })

  test('a claim for a worker that the store no longer has', () => {
    const story = new Story().register('w').enqueue('a')
    story.write({ type: 'lease', what: 'gone', worker: 'w', expiresAt: null })
    story.claim('w', ['a'])
    expect(broken(story)).toEqual(['S3 a'])
  })

  test('an undelivered lease that is released while its answer is on its way', () => {
    const release = (answered: boolean): string[] => {
      const story = new Story().register('w').enqueue('a')
      const op = story.invoke(claimCall('w'))
      const token = story.grant('w', ['a'])
      const reply = story.leaseReply(token, ['a'])
      if (!answered) story.unknown(op)
      const beat = story.invoke({ kind: 'heartbeat', worker: 'w', undelivered: [token] })
      story.move('a', 'release-undelivered', 'ready', { attempt: 0 })
      story.answer(beat, { kind: 'heartbeat', alive: true, tokens: [] })
      if (answered) story.answer(op, reply)
      return broken(story.end())
    }
    expect(release(false)).toEqual([])
    expect(release(true)).toEqual(['S3 a'])
  })

  test('a handler starts once a lease', () => {
    expect(broken(leased().run('a', 'start').run('a', 'end'))).toEqual([])
    expect(broken(leased().run('a', 'start').run('a', 'start'))).toEqual(['S3 a'])
  })

  test('a handler starts only while its worker can be sure of the lease, counted from when the renewal was sent', () => {
    const startedAfter = (ms: number): string[] => {
      const story = leased()
      const op = story.wait(500).invoke({ kind: 'heartbeat', worker: 'w', undelivered: [] })
      story.wait(300).answer(op, { kind: 'heartbeat', alive: true, tokens: [1] })
      return broken(story.wait(ms - 800).run('a', 'start'))
    }
    expect(startedAfter(500 + LEASE_MS)).toEqual([])
    expect(startedAfter(501 + LEASE_MS)).toEqual(['S3 a'])
  })
})

describe('S4: a commit only with the current token', () => {
  test('a lease that has expired but is not rescued settles', () => {
    expect(
      broken(
        leased()
          .wait(10 * LEASE_MS)
          .settle('a', 'completed')
          .end(),
      ),
    ).toEqual([])
  })

  test('a repeated settle that is answered "already" is fine', () => {
    const story = leased()
    const call = story.settleCall('a', 'completed')
    story.settle('a', 'completed').call(call, settled('already'))
    expect(broken(story.end())).toEqual([])
  })

  test('a zombie whose settle is refused is fine', () => {
    const story = leased()
    const call = story.settleCall('a', 'completed')
    story.wait(LEASE_MS).rescue(['a']).call(call, settled('lost'))
    expect(broken(story.end())).toEqual([])
  })

  test('a zombie that commits over the new owner', () => {
    const story = leased()
    const { token, worker } = story.jobs.get('a')!
    story.wait(LEASE_MS).rescue(['a']).promote('a').heartbeat('x', 'n2')
    story.claim('x', ['a'], 'n2')
    story.move('a', 'settle', 'completed', { settlement: 'completed', token, worker })
    expect(broken(story)).toEqual(['S4 a'])
  })

  test('a settle that is written a second time', () => {
    const story = leased().settle('a', 'completed')
    story.move('a', 'settle', 'completed', {
      from: 'running',
      token: 1,
      worker: 'w',
      settlement: 'completed',
    })
    expect(broken(story.end())).toEqual(['S4 a'])
  })

  test('a settle under the right token, but by another worker', () => {
    const story = leased()
    story.move('a', 'settle', 'completed', { settlement: 'completed', worker: 'x' })
    expect(broken(story)).toEqual(['S4 a'])
  })

  test('a rescue that takes the lease of the new owner', () => {
    const story = leased().wait(LEASE_MS).rescue(['a']).promote('a').heartbeat('x', 'n2')
    story.claim('x', ['a'], 'n2')
    story.invoke({ kind: 'rescue' })
    story.move('a', 'rescue', 'scheduled', { token: 1, worker: 'w', attempt: 0, crashes: 2 })
    expect(broken(story)).toEqual(['S4 a'])
  })

  test('an answer "written" to a settle that nothing was written of', () => {
    const story = leased()
    expect(broken(story.call(story.settleCall('a', 'completed'), settled('written')))).toEqual(['S4 a'])
  })

  test('an answer "written" for a lease that was taken away, when the next owner has settled', () => {
    const story = leased()
    const call = story.settleCall('a', 'completed')
    story.wait(LEASE_MS).rescue(['a']).promote('a').heartbeat('x', 'n2')
    story.claim('x', ['a'], 'n2')
    expect(broken(story.settle('a', 'completed', 'n2').call(call, settled('written')))).toEqual(['S4 a'])
  })

  test('an answer "already" or "lost" while the lease stands', () => {
    for (const answer of ['already', 'lost'] as const) {
      const story = leased()
      expect(broken(story.call(story.settleCall('a', 'completed'), settled(answer)))).toEqual(['S4 a'])
    }
  })

  test('two answers "written" for one position, with or without moves', () => {
    for (const moves of [true, false]) {
      const story = leased({ moves })
      const call = story.settleCall('a', 'retry')
      expect(broken(story.settle('a', 'retry').call(call, settled('written')))).toEqual(['S4 a'])
    }
  })

  test('without moves: written under a token that was known to be over when it was sent', () => {
    const story = leased({ moves: false })
    const call = story.settleCall('a', 'completed')
    const sentBefore = story.invoke(call)
    story.wait(LEASE_MS).rescue(['a'])
    expect(broken([...story.events, ...answerTo(story, sentBefore)])).toEqual([])
    const sentAfter = story.invoke(call)
    expect(broken(story.answer(sentAfter, settled('written')))).toEqual(['S4 a'])
  })
})

function answerTo(story: Story, op: number): Story['events'] {
  const { seq, t } = story.events.at(-1)!
  return [{ seq: seq + 1, t, type: 'answer', op, node: 'n1', reply: settled('written') }]
}

describe('S5: tokens and attempts only grow', () => {
  test('release, snooze, the release of an undelivered lease, rescue and replay hand attempts back', () => {
    const story = leased().settle('a', 'release')
    story.claim('w', ['a'])
    story.settle('a', 'snooze').promote('a').claim('w', ['a'])
    story.settle('a', 'retry').promote('a').claim('w', ['a'])
    story.wait(LEASE_MS).rescue(['a']).promote('a').heartbeat('w')
    story.claim('w', ['a'])
    story.settle('a', 'dead')
    const op = story.invoke({ kind: 'change', action: 'replay', jobs: ['a'] })
    story.move('a', 'replay', 'ready', { attempt: 0, crashes: 0 })
    story.answer(op, { kind: 'change', changed: 1 })
    expect(broken(story.end())).toEqual([])
  })

  test('a release that burns the attempt, a retry that gives it back, a claim that does not count', () => {
    const wrong = (to: 'release' | 'retry', attempt: number): string[] => {
      const story = leased()
      const state = to === 'release' ? 'ready' : 'scheduled'
      return broken(story.move('a', 'settle', state, { settlement: to, attempt }))
    }
    expect(wrong('release', 1)).toEqual(['S5 a'])
    expect(wrong('retry', 0)).toEqual(['S5 a'])
    const story = new Story().register('w').enqueue('a')
    expect(broken(story.move('a', 'claim', 'running', { token: 1, worker: 'w', attempt: 0 }))).toEqual([
      'S5 a',
    ])
  })

  test('a rescue that does not count the crash', () => {
    const story = leased().wait(LEASE_MS)
    expect(broken(story.move('a', 'rescue', 'scheduled', { attempt: 0 }))).toEqual(['S5 a'])
  })

  test('a replace that keeps the attempts that were used', () => {
    const replaced = (attempt: number): string[] =>
      broken(leased().settle('a', 'retry').move('a', 'replace', 'scheduled', { attempt, payload: '[2]' }))
    expect(replaced(1)).toContain('S5 a')
    expect(replaced(0)).not.toContain('S5 a')
  })

  test('a later lease with a token that is not greater', () => {
    const story = leased().settle('a', 'release')
    story.grant('w', ['a'], 1)
    expect(broken(story)).toEqual(['S5 a'])
  })

  test('without moves: the answers tell, if one was sent after the other had come', () => {
    const story = leased({ moves: false }).settle('a', 'release')
    const op = story.invoke(claimCall('w'))
    story.grant('w', ['a'], 1)
    expect(broken(story.answer(op, story.leaseReply(1, ['a'])))).toEqual(['S5 a'])
  })

  test('a claim that is answered with another attempt than it is', () => {
    const story = new Story().register('w').enqueue('a')
    const op = story.invoke(claimCall('w'))
    const token = story.grant('w', ['a'])
    const lease = { token, jobs: [{ id: 'a', attempt: 2, crashes: 0 }] }
    story.answer(op, { kind: 'cycle', alive: true, settled: [], leases: [lease] })
    expect(broken(story)).toEqual(['S5 a'])
  })
})
