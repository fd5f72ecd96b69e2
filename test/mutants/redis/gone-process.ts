/** A worker offers to take jobs, and its process ends without a word. Redis knows: nobody listens on its channel. */
import { Harness, QUEUE } from '../../../src/stores/conformance/support.ts'
import { freshPrefix, openRedisStore } from '../../support/servers/redis-store.ts'
import type { EditText } from '../mutant.ts'

export async function handsNothingToNobody(url: string, edit: EditText): Promise<void> {
  const prefix = freshPrefix()
  const [gone, here] = await Promise.all([
    openRedisStore({ url, prefix, edit }),
    openRedisStore({ url, prefix, edit }),
  ])
  try {
    const worker = await new Harness(gone).worker()
    await gone.store.subscribe(() => undefined)
    await gone.store.cycle({
      worker,
      settle: [],
      claim: { queue: QUEUE, limit: 5, suspects: false },
      offer: { nth: 1, jobs: 5, queues: [QUEUE], forMs: 60_000, received: [] },
    })
    await gone.close()
    const harness = new Harness(here)
    const job = await harness.put()
    const { attempt } = await harness.inState(job.id, 'ready')
    if (attempt !== 0) throw new Error(`an attempt was used: ${attempt}`)
  } finally {
    await here.close()
  }
}
