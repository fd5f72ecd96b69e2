import { describe, expect, test } from 'vitest'
import { broken } from './testing/broken.ts'
import { claimCall, LEASE_MS, settled, Story } from './testing/story.ts'

const NOTHING = { kind: 'cycle', alive: true, settled: [], leases: [] } as const

describe('L1: an orphan is recovered within lease + sweep + ε', () => {
  /** One worker with a job on n1, upkeep on n2 and n3, and a long silence. */
  function quiet({ moves = true } = {}): Story {
    const story = new Story({ moves }).started('n1', { slots: 1 })
    story.started('n2', { upkeep: true, queues: [] }).started('n3', { upkeep: true, queues: [] })
    story.write({ type: 'phase', phase: 'healed' }).call(claimCall('w'), NOTHING)
    story.wait(60_000).register('w').enqueue('a')
    story.claim('w', ['a'])
    // It has no free slot, so the checker does not ask why it does not claim.
    return story.run('a', 'start')
  }
  const ALLOWED_MS = LEASE_MS + 200 + 100

  const end = (story: Story): string[] => broken(story.end())

  test('in time, and a moment too late', () => {
    const killed = (): Story => quiet().write({ type: 'node', what: 'killed', node: 'n1' })
    expect(end(killed().wait(ALLOWED_MS).rescue(['a']))).toEqual([])
    expect(
      end(
        killed()
          .wait(ALLOWED_MS + 1)
          .rescue(['a']),
      ),
    ).toEqual(['L1 a'])
  })

  test('never', () => {
    expect(end(quiet().wait(ALLOWED_MS + 1))).toEqual(['L1 a'])
    const exact = quiet()
    exact.write({ type: 'lease', what: 'registered', worker: 'w', expiresAt: exact.t + LEASE_MS })
    expect(end(exact.wait(ALLOWED_MS + 1))).toEqual(['L1 a'])
  })

  test('if every node that does upkeep is cut off from the store, nothing is demanded until one is back', () => {
    const cutOff = (what: 'down' | 'up', story: Story): Story => {
      for (const node of ['n2', 'n3']) story.write({ type: 'store', what, node })
      return story
    }
    const away = (): Story => cutOff('down', quiet()).wait(10 * ALLOWED_MS)
    expect(end(away())).toEqual([])
    expect(end(cutOff('up', away()).wait(ALLOWED_MS).rescue(['a']))).toEqual([])
    expect(
      end(
        cutOff('up', away())
          .wait(10 * ALLOWED_MS)
          .rescue(['a']),
      ),
    ).toEqual(['L1 a'])
  })

  test('without moves the last snapshot tells', () => {
    expect(end(quiet({ moves: false }).wait(ALLOWED_MS))).toEqual([])
    expect(end(quiet({ moves: false }).wait(ALLOWED_MS + 1))).toEqual(['L1 a'])
  })

  test('a lease that is renewed is no orphan', () => {
    const story = quiet()
    for (let beat = 0; beat < 10; beat++) story.wait(LEASE_MS / 2).heartbeat('w')
    expect(end(story)).toEqual([])
  })

  test('a worker that retires with a lease: its sweep begins at once', () => {
    const retired = (): Story => quiet().call({ kind: 'retire', worker: 'w' }, { kind: 'retire' })
    expect(end(retired().wait(300).rescue(['a']))).toEqual([])
    expect(end(retired().wait(301).rescue(['a']))).toEqual(['L1 a'])
  })

  test('after an outage a rescuer waits one lease', () => {
    const outage = (): Story => {
      const story = quiet().wait(500).write({ type: 'store', what: 'down' }).wait(5_000)
      return story.write({ type: 'store', what: 'up' })
    }
    expect(
      end(
        outage()
          .wait(LEASE_MS + 300 + 300)
          .rescue(['a']),
      ),
    ).toEqual([])
    expect(
      end(
        outage()
          .wait(LEASE_MS + 300 + 301)
          .rescue(['a']),
      ),
    ).toEqual(['L1 a'])
  })

  test('if the upkeep dies with the worker, another node has to take over', () => {
    const story = quiet().wait(1_200).write({ type: 'node', what: 'killed', node: 'n2' })
    expect(end(story.wait(300 + 300).rescue(['a'], 'n3'))).toEqual([])
  })

  test('nobody does the upkeep: nothing is demanded', () => {
    const story = quiet()
    story
      .write({ type: 'node', what: 'killed', node: 'n2' })
      .write({ type: 'node', what: 'frozen', node: 'n3' })
    expect(end(story.wait(60_000))).toEqual([])
  })

  test('a fault that touched a rescuer excuses it, one elsewhere does not', () => {
    const fault = (node: string): string[] =>
      end(quiet().wait(1_000).write({ type: 'fault', kind: 'drop', node }).wait(500).rescue(['a']))
    expect(fault('n3')).toEqual([])
    expect(fault('n1')).toEqual(['L1 a'])
  })

  test('a later fault does not excuse what was already late', () => {
    const story = quiet()
      .wait(ALLOWED_MS + 1)
      .write({ type: 'fault', kind: 'drop' })
    expect(end(story.rescue(['a']))).toEqual(['L1 a'])
  })
})

describe('L1: a lease that its worker was never told of is given back', () => {
  /** A claim whose answer was lost, by a worker whose heartbeats continue. */
  function untold(): Story {
    const story = new Story().started('n1').started('n2', { upkeep: true, queues: [] })
    story.write({ type: 'phase', phase: 'healed' }).register('w').enqueue('a')
    story.invoke(claimCall('w'))
    story.grant('w', ['a'])
    return story
  }
  const beatFor = (story: Story, beats: number): Story => {
    for (let beat = 0; beat < beats; beat++)
      story
        .wait(LEASE_MS / 2)
        .heartbeat('w')
        .call(claimCall('w'), NOTHING)
    return story
  }
  const released = (story: Story): Story => story.move('a', 'release-undelivered', 'ready', { attempt: 0 })

  test('in time, too late, and never', () => {
    expect(broken(beatFor(released(beatFor(untold(), 6)), 1).end())).toEqual([])
    expect(broken(beatFor(released(beatFor(untold(), 7)), 1).end())).toEqual(['L1 a'])
    expect(broken(beatFor(untold(), 7).end())).toEqual(['L1 a'])
  })

  test('the time begins again when something disturbs the worker or the store, not when it disturbs another', () => {
    const disturbed = (node?: string): Story => {
      const story = beatFor(untold(), 4)
      return beatFor(story.write({ type: 'fault', kind: 'cut', ...(node === undefined ? {} : { node }) }), 5)
    }
    expect(broken(released(disturbed('n1')).end())).toEqual([])
    expect(broken(released(disturbed()).end())).toEqual([])
    expect(broken(released(disturbed('n2')).end())).toEqual(['L1 a'])
  })

  test('a lease that is worked on may last', () => {
    const story = new Story().started('n1').started('n2', { upkeep: true, queues: [] })
    story.write({ type: 'phase', phase: 'healed' }).register('w').enqueue('a')
    story.claim('w', ['a'])
    expect(broken(beatFor(story.run('a', 'start'), 20).end())).toEqual([])
  })
})

describe('L2: a worker asks again soon after the store is back', () => {
  function back(): Story {
    const story = new Story().started('n1', { slots: 1 }).register('w').enqueue('a')
    return story.write({ type: 'store', what: 'down' }).wait(1_000).write({ type: 'store', what: 'up' })
  }
  const ask = (story: Story): Story => story.call(claimCall('w'), NOTHING)
  const end = (story: Story): string[] => broken(story.write({ type: 'phase', phase: 'end' }))

  test('in time, too late, never', () => {
    expect(end(ask(back().wait(5_000)))).toEqual([])
    expect(end(ask(back().wait(5_001)))).toEqual(['L2'])
    expect(end(back().wait(5_001))).toEqual(['L2'])
  })

  test('a settle or a heartbeat is no question', () => {
    const story = back().wait(1_000).heartbeat('w')
    story.call({ kind: 'cycle', worker: 'w', settles: [], claim: null }, settled())
    expect(end(story.wait(4_001))).toEqual(['L2'])
  })

  test('a stopped, killed or frozen node need not', () => {
    expect(
      end(back().write({ type: 'stop', what: 'begin', node: 'n1', graceMs: 30_000 }).wait(9_000)),
    ).toEqual([])
    expect(end(back().write({ type: 'node', what: 'killed', node: 'n1' }).wait(9_000))).toEqual([])
    expect(end(back().write({ type: 'node', what: 'frozen', node: 'n1' }).wait(9_000))).toEqual([])
  })

  test('a node that thaws must', () => {
    const thawed = (): Story => {
      const story = back().write({ type: 'node', what: 'frozen', node: 'n1' }).wait(9_000)
      return story.write({ type: 'node', what: 'thawed', node: 'n1' })
    }
    expect(end(ask(thawed().wait(5_000)))).toEqual([])
    expect(end(thawed().wait(5_001))).toEqual(['L2'])
  })

  test('the time starts again with a fault, a second outage, or when the worker alone was cut off', () => {
    expect(end(back().wait(4_000).write({ type: 'fault', kind: 'drop', node: 'n1' }).wait(4_000))).toEqual([])
    expect(end(back().wait(4_000).write({ type: 'store', what: 'down' }).wait(9_000))).toEqual([])
    const cut = ask(back()).write({ type: 'store', what: 'down', node: 'n1' }).wait(9_000)
    expect(end(cut.write({ type: 'store', what: 'up', node: 'n1' }).wait(5_001))).toEqual(['L2'])
  })

  test('a worker without room does not ask', () => {
    const story = new Story().started('n1', { slots: 1 }).register('w').enqueue('a')
    story.claim('w', ['a'])
    story
      .run('a', 'start')
      .write({ type: 'store', what: 'down' })
      .wait(100)
      .write({ type: 'store', what: 'up' })
    expect(end(ask(story.wait(9_000).run('a', 'end').wait(4_000)))).toEqual([])
  })

  test('all must when everything is healed', () => {
    const story = new Story().started('n1').register('w').write({ type: 'phase', phase: 'healed' })
    expect(end(story.wait(5_001))).toEqual(['L2'])
  })
})

describe('L3: no job starves in the healed part', () => {
  function healed(): Story {
    const story = new Story().started('n1').started('n2', { upkeep: true, queues: [] }).register('w')
    return story.enqueue('old').wait(10_000).write({ type: 'phase', phase: 'healed' })
  }
  const end = (story: Story): string[] => broken(story.end()).filter((rule) => rule !== 'L2')

  test('the time counts from when all was healed', () => {
    const story = healed().wait(2_000)
    story.claim('w', ['old'])
    expect(end(story)).toEqual([])
    const late = healed().wait(2_001)
    late.claim('w', ['old'])
    expect(end(late)).toEqual(['L3 old'])
    expect(end(healed().wait(2_001))).toEqual(['L3 old'])
  })

  test('a job that came later', () => {
    const readyFor = (ms: number): string[] => {
      const story = healed()
      story.claim('w', ['old'])
      return end(story.settle('old', 'completed').wait(100).enqueue('new').wait(ms))
    }
    expect(readyFor(2_000)).toEqual([])
    expect(readyFor(2_001)).toEqual(['L3 new'])
  })

  test('nothing is demanded of a queue that is paused or that no worker reads', () => {
    expect(end(healed().pause('q').wait(9_000))).toEqual([])
    expect(end(healed().write({ type: 'node', what: 'killed', node: 'n1' }).wait(9_000))).toEqual([])
    const stopping = healed().write({ type: 'stop', what: 'begin', node: 'n1', graceMs: 30_000 })
    expect(end(stopping.wait(9_000))).toEqual([])
    expect(end(new Story().started('n1').enqueue('x', { queue: 'other' }).wait(9_000))).toEqual([])
  })

  test('a job that had starved before its workers left still counts', () => {
    const story = healed().wait(2_001).write({ type: 'node', what: 'killed', node: 'n1' })
    expect(end(story.wait(10))).toEqual(['L3 old'])
  })

  test('suspects come one at a time and may wait', () => {
    const story = healed()
    story.claim('w', ['old'])
    story.wait(LEASE_MS).rescue(['old']).promote('old')
    expect(end(story.wait(9_000))).toEqual([])
  })

  test('a new worker starts the time', () => {
    const readFor = (ms: number): string[] => {
      const story = healed().write({ type: 'node', what: 'killed', node: 'n1' })
      return end(story.wait(9_000).started('n4').wait(ms))
    }
    expect(readFor(2_000)).toEqual([])
    expect(readFor(2_001)).toEqual(['L3 old'])
  })

  test('a job that is due and not promoted', () => {
    const dueSince = (ms: number): string[] => {
      const story = healed()
      story.claim('w', ['old'])
      return end(
        story
          .settle('old', 'completed')
          .enqueue('later', { due: { inMs: 500 } })
          .wait(500 + ms),
      )
    }
    expect(dueSince(2_000)).toEqual([])
    expect(dueSince(2_001)).toEqual(['L3 later'])
  })
})

test('a history that breaks off is judged up to its last event', () => {
  const story = new Story()
    .started('n1')
    .started('n2', { upkeep: true, queues: [] })
    .register('w')
    .enqueue('a')
  story
    .write({ type: 'phase', phase: 'healed' })
    .write({ type: 'stop', what: 'begin', node: 'n1', graceMs: 5 })
  expect(broken(story.started('n3').wait(9_000).heartbeat('w'))).toEqual(['L3 a', 'L4'])
})

describe('L4: a drain leaves no lease and ends in its grace', () => {
  function stopping(): Story {
    const story = new Story().started('n1').register('w').enqueue('a')
    story.claim('w', ['a'])
    return story.write({ type: 'stop', what: 'begin', node: 'n1', graceMs: 500 })
  }
  const stop = (story: Story): Story => story.write({ type: 'stop', what: 'end', node: 'n1' })

  test('in good order', () => {
    expect(broken(stop(stopping().wait(600).settle('a', 'release')).end())).toEqual([])
  })

  test('too late, or never', () => {
    expect(broken(stop(stopping().settle('a', 'release').wait(601)))).toEqual(['L4'])
    expect(broken(stopping().settle('a', 'release').wait(601).end())).toEqual(['L4'])
  })

  test('a second signal hurries', () => {
    const story = stopping().settle('a', 'release').wait(100)
    story.write({ type: 'stop', what: 'begin', node: 'n1', graceMs: 0 })
    expect(broken(stop(story.wait(101)))).toEqual(['L4'])
  })

  test('a lease that is left behind', () => {
    expect(broken(stop(stopping().wait(100)))).toEqual(['L4 a'])
    const story = new Story({ moves: false }).started('n1').register('w').enqueue('a')
    story.claim('w', ['a'])
    story.write({ type: 'stop', what: 'begin', node: 'n1', graceMs: 500 })
    expect(broken(stop(story).end())).toEqual(['L4 a'])
  })

  test('a lease that the worker never learnt of is not its fault', () => {
    const story = new Story().started('n1').register('w').enqueue('a')
    story.unknown(story.invoke(claimCall('w')))
    story.grant('w', ['a'])
    story.write({ type: 'stop', what: 'begin', node: 'n1', graceMs: 500 })
    expect(broken(stop(story).end())).toEqual([])
  })

  test('an outage, a lost answer, a freeze or a kill meanwhile excuses it', () => {
    const outage = stopping().write({ type: 'store', what: 'down' })
    expect(broken(stop(outage.wait(9_000)))).toEqual([])
    const away = new Story().started('n1').write({ type: 'store', what: 'down', node: 'n1' })
    away.write({ type: 'stop', what: 'begin', node: 'n1', graceMs: 500 })
    expect(broken(stop(away.wait(9_000)))).toEqual([])
    const lost = stopping()
    lost.unknown(lost.invoke(lost.settleCall('a', 'release')))
    expect(broken(stop(lost.wait(9_000)))).toEqual([])
    const frozen = stopping().write({ type: 'node', what: 'frozen', node: 'n1' })
    expect(broken(stop(frozen.wait(9_000)))).toEqual([])
    expect(broken(stopping().write({ type: 'node', what: 'killed', node: 'n1' }).wait(9_000).end())).toEqual(
      [],
    )
  })
})
