/** Calls whose caller has given up while they waited for a connection: they are not sent any more. */
import { expect, onTestFinished, test } from 'vitest'
import { holdfast } from '../../../src/index.ts'
import { postgresStore } from '../../../src/stores/postgres/index.ts'
import { withClient } from '../../support/servers/client.ts'
import { freshDatabase, sharedPostgres } from '../../support/servers/database.ts'
import { until } from '../../support/until.ts'

test('an enqueue that waits for a connection for longer than its caller is never sent', async () => {
  const database = await freshDatabase(sharedPostgres(18))
  const hf = holdfast({
    store: postgresStore({ url: database.url, connections: 1 }),
    timeout: '1s',
    logger: false,
  })
  onTestFinished(async () => {
    await hf.close()
    await database.drop()
  })
  const job = hf.job({ name: 'job', run: () => undefined })
  await job.enqueue()
  await withClient(database.url, async (client) => {
    const jobs = async (text: string): Promise<number> => {
      const { rows } = await client.query<{ n: number }>(text)
      return rows[0]!.n
    }
    const waiting = `select count(*)::int as n from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`
    await client.query('begin')
    await client.query('lock table holdfast.ready in access exclusive mode')
    const sent = expect(job.enqueue()).rejects.toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
    await until('the first to be sent', async () => (await jobs(waiting)) === 1)
    const abandoned = expect(job.enqueue()).rejects.toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
    await Promise.all([sent, abandoned])
    // The connection is still in use: a statement yields its place after two seconds.
    await client.query('commit')
    await job.enqueue()
    const all = 'select count(*)::int as n from holdfast.ready'
    await until('what was sent to be written', async () => (await jobs(all)) >= 3)
    expect(await jobs(all), 'the first, the one that was sent, and the last').toBe(3)
  })
})
