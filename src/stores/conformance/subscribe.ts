/** Wake-ups: best effort, so these tests wait for a hint and never count them. */
import assert from 'node:assert/strict'
import type { WakeUp } from '../store.ts'
import type { Topic } from './suite.ts'
import {
  cancelOne,
  changeJobs,
  COMPLETED,
  DEAD,
  MINUTE_MS,
  newJob,
  NOW,
  RELEASE,
  type Harness,
} from './support.ts'

async function listen(harness: Harness): Promise<{ hints: WakeUp[]; stop: () => Promise<void> }> {
  const hints: WakeUp[] = []
  const stop = await harness.store.subscribe((hint) => hints.push(hint))
  return { hints, stop }
}

function readyFor(queue: string): (hint: WakeUp) => boolean {
  return (hint) => hint.type === 'ready' && hint.queue === queue
}

export const subscribeTopic: Topic = {
  name: 'subscribe',
  tests: {
    'an enqueue wakes those who wait for its queue': async (harness) => {
      const { hints } = await listen(harness)
      await harness.enqueue([newJob({ queue: 'a' }), newJob({ queue: 'b' })])
      await harness.waitFor('a hint for a', () => hints.some(readyFor('a')))
      await harness.waitFor('a hint for b', () => hints.some(readyFor('b')))
    },
    'a delayed enqueue tells when to look again': async (harness) => {
      const { hints } = await listen(harness)
      await harness.put({ due: { inMs: 10 * MINUTE_MS } })
      await harness.waitFor('a due hint', () => hints.some((hint) => hint.type === 'due'))
      for (const hint of hints) {
        if (hint.type === 'due')
          assert.ok(hint.inMs > 9 * MINUTE_MS && hint.inMs <= 10 * MINUTE_MS, `in ${hint.inMs} ms`)
      }
    },
    'a promote wakes those who wait for its queue': async (harness) => {
      await harness.put({ queue: 'a', due: { inMs: MINUTE_MS } })
      const { hints } = await listen(harness)
      await harness.passAndPromote(2 * MINUTE_MS)
      await harness.waitFor('a hint for a', () => hints.some(readyFor('a')))
    },
    'a release wakes those who wait for its queue': async (harness) => {
      const held = await harness.running({ queue: 'a' })
      const { hints } = await listen(harness)
      await harness.settled(held, RELEASE)
      await harness.waitFor('a hint for a', () => hints.some(readyFor('a')))
    },
    'a resume wakes those who wait for its queue': async (harness) => {
      await harness.store.admin.setPaused('a', true)
      await harness.put({ queue: 'a' })
      const { hints } = await listen(harness)
      await harness.store.admin.setPaused('a', false)
      await harness.waitFor('a hint for a', () => hints.some(readyFor('a')))
    },
    'a replay wakes those who wait for its queue': async (harness) => {
      const { id } = await harness.finished(DEAD, { queue: 'a' })
      const { hints } = await listen(harness)
      await changeJobs(harness.store, { ids: [id] }, { type: 'replay' }, 10, null)
      await harness.waitFor('a hint for a', () => hints.some(readyFor('a')))
    },
    'a fired schedule wakes those who wait for its queue': async (harness) => {
      await harness.store.schedules.put('s', { spec: '{}', nextTick: 1 })
      const { hints } = await listen(harness)
      await harness.store.schedules.fire('s', 1, null, newJob({ queue: 'a', due: NOW }))
      await harness.waitFor('a hint for a', () => hints.some(readyFor('a')))
    },
    'a cancel of a running job calls its worker': async (harness) => {
      const held = await harness.running()
      const { hints } = await listen(harness)
      await cancelOne(harness.store, held.job.id, null)
      await harness.waitFor('a cancel hint for the worker', () =>
        hints.some((hint) => hint.type === 'cancel' && hint.worker === held.worker),
      )
    },
    'a pause calls those who hold jobs of its queue': async (harness) => {
      const { hints } = await listen(harness)
      await harness.store.admin.setPaused('some queue', true)
      await harness.waitFor('a hint about the pause', () =>
        hints.some((hint) => hint.type === 'paused' && hint.queue === 'some queue'),
      )
    },
    'every listener is told, and one that stopped is not': async (harness) => {
      const [first, second, third] = [await listen(harness), await listen(harness), await listen(harness)]
      await first.stop()
      await harness.put({ queue: 'a' })
      await harness.waitFor('the second to hear of a', () => second.hints.some(readyFor('a')))
      await harness.waitFor('the third to hear of a', () => third.hints.some(readyFor('a')))
      await first.stop()
      await second.stop()
      await harness.put({ queue: 'b' })
      await harness.waitFor('the third to hear of b', () => third.hints.some(readyFor('b')))
      assert.deepEqual(first.hints, [], 'it heard nothing after it stopped, and stopping again is harmless')
      assert.ok(!second.hints.some(readyFor('b')), 'nor did the second')
    },
    'a listener that throws keeps no step from happening': async (harness) => {
      const stop = await harness.store.subscribe(() => {
        throw new Error('a listener with a bug')
      })
      const { hints } = await listen(harness)
      const held = await harness.running({ queue: 'a' })
      await harness.settled(held, RELEASE)
      await harness.settled(await harness.claimOne(held.worker, { queue: 'a' }), COMPLETED)
      await harness.waitFor('the other listener to be told', () => hints.some(readyFor('a')))
      await stop()
    },
  },
}
