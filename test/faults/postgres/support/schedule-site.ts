/** The schedule soak on PostgreSQL. */
import { postgresStore } from '../../../../src/stores/postgres/index.ts'
import { startPostgres } from '../../../support/servers/postgres-server.ts'
import { scheduleSoak, type ScheduleOptions, type ScheduleReport } from '../../support/schedule-soak.ts'

export async function scheduleSoakOnPostgres(options: ScheduleOptions): Promise<ScheduleReport> {
  // The server itself stays up, so nothing needs to be synced.
  await using server = await startPostgres({
    version: 18,
    settings: { fsync: 'off', max_connections: '100' },
  })
  const url = await server.createDatabase('soak')
  const store = postgresStore({ url })
  await store.open()
  try {
    return await scheduleSoak({ url, store }, options)
  } finally {
    await store.close()
  }
}
