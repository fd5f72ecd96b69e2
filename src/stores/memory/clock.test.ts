import { expect, test } from 'vitest'
import { systemClock } from '../../std/clock.ts'
import { systemRandom } from '../../std/random.ts'
import { newFlushId, newJob } from '../conformance/support.ts'
import { memoryStore } from './index.ts'

test('a job that is due at once is ready, though the clock ticks while it is written', async () => {
  let now = Date.UTC(2030)
  const store = memoryStore({ clock: { ...systemClock, now: () => now++ }, random: systemRandom })
  const job = newJob()
  await store.enqueue({ id: newFlushId(), jobs: [job] })
  expect((await store.admin.get(job.id))?.state).toBe('ready')
})
