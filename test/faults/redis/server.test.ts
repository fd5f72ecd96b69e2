/** Redis is killed, loses its scripts or is full, and recovers. The history checker judges. */
import type { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { oneShard } from '../../../src/stores/redis/shards.ts'
import { redisMissing } from '../../support/servers/redis.ts'
import { PATIENT } from '../support/fleet.ts'
import { until } from '../../support/until.ts'
import { readAppendOnly } from './support/append-only.ts'
import { infoOf, withRedis } from './support/commands.ts'
import { judgeFences } from './support/fence-book.ts'
import { KEPT, setStage } from './support/stage.ts'

const BASE = oneShard('holdfast').control.keys[0]

describe.skipIf(redisMissing() !== '')('a server that is killed', PATIENT, () => {
  test.for(['always', 'everysec'])(
    'and starts again with its append-only file, appendfsync %s, has lost nothing',
    async (appendfsync, context) => {
      const { fleet, server } = await setStage(context, { settings: { ...KEPT, appendfsync } })
      if (appendfsync === 'everysec') await withRedis(server.url, betweenSyncs)
      fleet.down()
      await server.kill()
      expect(await fleet.enqueueInVain()).toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
      await server.start()
      fleet.up()
      await context.annotate(`claims again after ${Math.round(await fleet.reclaimed())} ms`)
      await fleet.progress(30)
      await fleet.judge()
      const { broken, settled } = judgeFences(await readAppendOnly(server.url), BASE)
      expect(broken).toEqual([])
      expect(settled).toBeGreaterThan(30)
    },
  )
})

/**
 * With everysec, Redis writes to its file before it answers, so a killed Redis loses nothing, except during a sync: then it
 * holds back writes for up to two seconds and answers anyway. So wait for a sync to end: the next one comes a second later.
 * If none is seen, syncs are too short to matter.
 */
async function betweenSyncs(redis: Redis): Promise<void> {
  const isSyncing = async (): Promise<boolean> => (await infoOf(redis, 'aof_pending_bio_fsync')) !== '0'
  await until('a sync', isSyncing, { deadlineMs: 3_000, everyMs: 0 }).catch(() => undefined)
  await until('its end', async () => !(await isSyncing()), { everyMs: 0 })
}

describe.skipIf(redisMissing() !== '')('a server that is told to forget its scripts', PATIENT, () => {
  test('gets them again, under load and without any error', async (context) => {
    const { fleet, server } = await setStage(context)
    for (let round = 0; round < 20; round++) {
      fleet.fault('scripts flushed')
      await withRedis(server.url, (redis) => redis.script('FLUSH'))
      await fleet.progress(5)
    }
    expect(fleet.failures).toEqual([])
    await fleet.judge()
  })
})

describe.skipIf(redisMissing() !== '')('a server that is full', PATIENT, () => {
  test('refuses enqueues, while its workers finish every job that it holds', async (context) => {
    const { fleet, server } = await setStage(context, { settings: { 'maxmemory-policy': 'noeviction' } })
    const setLimit = (bytes: number): Promise<unknown> =>
      withRedis(server.url, (redis) => redis.config('SET', 'maxmemory', bytes))
    fleet.fault('full')
    await setLimit(1)
    expect(await fleet.enqueueInVain()).toMatchObject({ code: 'HF_STORE_FULL' })
    await fleet.drained()
    await setLimit(0)
    await fleet.progress(30)
    expect(fleet.refused.length).toBeGreaterThan(0)
    for (const { error } of fleet.refused) expect(error).toMatchObject({ code: 'HF_STORE_FULL' })
    await fleet.judge()
  })
})
