/** The kill soak on a Redis that keeps what it has acknowledged (`appendfsync always`). */
import { fileURLToPath } from 'node:url'
import { redisStore } from '../../../../src/stores/redis/index.ts'
import { oneShard } from '../../../../src/stores/redis/shards.ts'
import type { Store } from '../../../../src/stores/store.ts'
import { startRedis } from '../../../support/servers/redis-server.ts'
import { killSoak, type Inspected, type KillOptions, type KillReport } from '../../support/kill-soak.ts'
import { areElsewhere, completedIn, heldBy } from '../../support/running-jobs.ts'
import { readAppendOnly } from './append-only.ts'
import { withRedis } from './commands.ts'
import { judgeFences } from './fence-book.ts'
import { KEPT } from './stage.ts'

const JOBS = fileURLToPath(new URL('kill-jobs.ts', import.meta.url))
const BASE = oneShard('holdfast').control.keys[0]

export async function killSoakOnRedis(options: KillOptions): Promise<KillReport> {
  await using server = await startRedis({ settings: { ...KEPT, appendfsync: 'always' } })
  const { url } = server
  const store = redisStore({ url, onNotice: () => undefined })
  await store.open()
  try {
    return await killSoak(
      {
        url,
        store,
        jobs: JOBS,
        clients: 3,
        held: (workers) => heldBy(store, workers),
        isRecovered: async (workers, jobs) => (await areGone(url, workers)) && areElsewhere(store, jobs),
        inspect: () => inspect(url, store),
        killServer: async () => {
          await server.kill()
          await server.start()
        },
      },
      options,
    )
  } finally {
    await store.close()
  }
}

async function areGone(url: string, workers: readonly string[]): Promise<boolean> {
  const found = await withRedis(url, (redis) => redis.hmget(`${BASE}workers`, ...workers))
  return found.every((leaseMs) => leaseMs === null)
}

async function inspect(url: string, store: Store): Promise<Inspected> {
  const { broken, settled } = judgeFences(await readAppendOnly(url), BASE)
  const [fences, times] = await withRedis(url, (redis) =>
    Promise.all([redis.hgetall('effect:fence'), redis.hgetall('effect:times')]),
  )
  let badEffects = 0
  let repeatedEffects = 0
  let completed = 0
  for await (const job of completedIn(store)) {
    completed++
    // Its result is the fence that it was completed under.
    if (job.result !== JSON.stringify(fences[job.id])) badEffects++
    repeatedEffects += Number(times[job.id] ?? 0) - job.attempt
  }
  // A record that does not tell of them all would be no record.
  const missing = settled < completed ? [`${completed} jobs are completed, of ${settled} the file tells`] : []
  return { moves: null, broken: [...broken, ...missing], badEffects, repeatedEffects }
}
