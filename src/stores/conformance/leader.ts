/** Leadership: one at a time, for as long as it is renewed. */
import assert from 'node:assert/strict'
import type { Topic } from './suite.ts'
import { MINUTE_MS, newWorkerId, SECOND_MS } from './support.ts'

export const leaderTopic: Topic = {
  name: 'leader',
  tests: {
    'there is one leader at a time': async ({ store: { upkeep } }) => {
      const [first, second] = [newWorkerId(), newWorkerId()]
      assert.equal(await upkeep.lead(first, MINUTE_MS), true)
      assert.equal(await upkeep.lead(second, MINUTE_MS), false)
      assert.equal(await upkeep.lead(first, MINUTE_MS), true, 'the leader stays the leader')
    },
    'of candidates at once, exactly one leads': async ({ store: { upkeep } }) => {
      const candidates = Array.from({ length: 10 }, newWorkerId)
      const answers = await Promise.all(candidates.map((candidate) => upkeep.lead(candidate, MINUTE_MS)))
      assert.equal(answers.filter((leads) => leads).length, 1)
    },
    'renewing extends the leadership from now': async (harness) => {
      const { upkeep } = harness.store
      const [first, second] = [newWorkerId(), newWorkerId()]
      for (let renewal = 0; renewal < 4; renewal++) {
        assert.equal(await upkeep.lead(first, MINUTE_MS), true)
        await harness.advance(MINUTE_MS - 10 * SECOND_MS)
        assert.equal(await upkeep.lead(second, MINUTE_MS), false, 'the leader has renewed in time')
      }
    },
    'a leader that does not renew is succeeded, and then waits its turn': async (harness) => {
      const { upkeep } = harness.store
      const [first, second] = [newWorkerId(), newWorkerId()]
      await upkeep.lead(first, MINUTE_MS)
      await harness.advance(MINUTE_MS + SECOND_MS)
      assert.equal(await upkeep.lead(second, MINUTE_MS), true)
      assert.equal(await upkeep.lead(first, MINUTE_MS), false)
    },
    'a leader that steps down is succeeded at once': async ({ store: { upkeep } }) => {
      const [first, second] = [newWorkerId(), newWorkerId()]
      await upkeep.lead(first, MINUTE_MS)
      assert.equal(await upkeep.lead(first, 0), false)
      assert.equal(await upkeep.lead(second, MINUTE_MS), true)
    },
    'stepping down without leading is harmless': async ({ store: { upkeep } }) => {
      const [first, second] = [newWorkerId(), newWorkerId()]
      assert.equal(await upkeep.lead(second, 0), false)
      await upkeep.lead(first, MINUTE_MS)
      assert.equal(await upkeep.lead(second, 0), false)
      assert.equal(await upkeep.lead(second, MINUTE_MS), false, 'the leader still leads')
      assert.equal(await upkeep.lead(first, MINUTE_MS), true)
    },
  },
}
