/** Many transactions compete for the same rows. The store repeats those that the server rolls back, and no caller notices. */
import { describe, expect, test } from 'vitest'
import { withClient } from '../../support/servers/client.ts'
import { sharedPostgres } from '../../support/servers/database.ts'
import { PATIENT, type Fleet } from '../support/fleet.ts'
import { until } from '../../support/until.ts'
import { setStage } from './support/stage.ts'

const DEADLOCK = '40P01'
const SOON = `deadlock_timeout = '20ms'`
/** No caller may see a conflict. Long timeouts, because a slow call on a busy machine is not one. */
const PATIENT_CALLS = { callMs: 20_000, queryTimeoutMs: 10_000 }
const KEYS = Array.from({ length: 20 }, (_, index) => `crossed-${index}`)

/** Enqueues and cancels the same keys, each call in its own order. */
async function crossKeys(fleet: Fleet, rounds: number): Promise<void> {
  await Promise.all(
    fleet.clients.map(async (client) => {
      for (let round = 0; round < rounds; round++) {
        const ids = await client.enqueueKeyed(KEYS)
        await Promise.all([client.cancelAll(ids), client.enqueueKeyed(KEYS)])
      }
    }),
  )
}

/**
 * Locks the same jobs in the reverse order, because Holdfast alone does not deadlock. Its long deadlock timeout makes the
 * server roll back the other side, unless that side had checked before the deadlock existed.
 */
async function lockBackwards(url: string, rounds: number): Promise<void> {
  await withClient(url, async (client) => {
    await client.query(`set deadlock_timeout = '5s'`)
    const lock = `select from holdfast.scheduled where unique_key like '%crossed-%' order by unique_key desc for update`
    for (let round = 0; round < rounds; round++) {
      await client.query(lock).catch((error: { code?: string }) => {
        if (error.code !== DEADLOCK) throw error
      })
      // The store repeats a call a few times. It must not run into this lock every time.
      await client.query('select pg_sleep(0.005)')
    }
  })
}

async function deadlocks(url: string): Promise<number> {
  const sql = 'select deadlocks::int as n from pg_stat_database where datname = current_database()'
  const { rows } = await withClient(url, (client) => client.query<{ n: number }>(sql))
  return rows[0]?.n ?? 0
}

describe.concurrent('conflicts', PATIENT, () => {
  test('that are deadlocks are resolved, and no caller sees one', async (context) => {
    const { fleet, database } = await setStage(context, {
      serverUrl: sharedPostgres(18),
      settings: [SOON],
      ...PATIENT_CALLS,
    })
    await until('some deadlocks', async () => {
      await Promise.all([crossKeys(fleet, 5), lockBackwards(database.url, 200)])
      return (await deadlocks(database.url)) >= 3
    })
    await fleet.judge()
    await context.annotate(`${await deadlocks(database.url)} deadlocks`)
    expect(fleet.failures).toEqual([])
  })

  test.for(['read committed', 'repeatable read', 'serializable'])(
    'are resolved in the same way if the default isolation level is %s',
    async (level, context) => {
      const settings = [SOON, `default_transaction_isolation = '${level}'`]
      const { fleet } = await setStage(context, { serverUrl: sharedPostgres(18), settings, ...PATIENT_CALLS })
      for (let round = 0; round < 10; round++) {
        await Promise.all(fleet.clients.map((client) => client.pauseAndResume()))
        await fleet.progress(5)
      }
      await crossKeys(fleet, 3)
      await fleet.judge()
      expect(fleet.failures).toEqual([])
    },
  )
})
