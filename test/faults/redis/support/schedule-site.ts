/** The schedule soak on Redis. */
import { redisStore } from '../../../../src/stores/redis/index.ts'
import { startRedis } from '../../../support/servers/redis-server.ts'
import { scheduleSoak, type ScheduleOptions, type ScheduleReport } from '../../support/schedule-soak.ts'
import { KEPT } from './stage.ts'

export async function scheduleSoakOnRedis(options: ScheduleOptions): Promise<ScheduleReport> {
  await using server = await startRedis({ settings: { ...KEPT, appendfsync: 'everysec' } })
  const { url } = server
  const store = redisStore({ url, onNotice: () => undefined })
  await store.open()
  try {
    return await scheduleSoak({ url, store }, options)
  } finally {
    await store.close()
  }
}
