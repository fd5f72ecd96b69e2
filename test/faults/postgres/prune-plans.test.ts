/**
 * A prune with nothing to delete reads only a few rows, however many finished jobs there are and whatever the planner knows
 * about them. Before PostgreSQL 18, SQL functions are planned without the values of their parameters.
 */
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { readNames } from '../../../src/stores/postgres/names.ts'
import { schemaScript } from '../../../src/stores/postgres/schema.ts'
import {
  freshDatabase,
  postgresVersions,
  sharedPostgres,
  type Database,
} from '../../support/servers/database.ts'
import { plansOf, scansOf, touched } from './support/plans.ts'

const ROWS = 20_000
const FINISHED: ReadonlySet<string> = new Set(['dead', 'ended', 'history', 'batch', 'payload'])
const DAY_MS = 86_400_000

const FILL = `
  insert into holdfast.dead (id, finished_at, due_at, created_at, attempt, crashes, priority, head_start, queue, name,
    fingerprint, error, facts, payload)
  select gen_random_uuid(), holdfast.now_ms() - number, 0, 0, 1, 0, 0, 0, 'default', 'job', 'f', '{}', '[]', '{}'
  from generate_series(1, ${ROWS}) as number;
  insert into holdfast.ended (id, finished_at, due_at, created_at, attempt, crashes, completed, queue, name, facts, payload)
  select gen_random_uuid(), holdfast.now_ms() - number, 0, 0, 1, 0, number % 2 = 0, 'default', 'job', '[]', '{}'
  from generate_series(1, 2 * ${ROWS}) as number;
  insert into holdfast.batch (token, claimed_at, size, has_large, wide, low, high, queue, first_name, last_name, ids, jobs, payloads)
  select number, holdfast.now_ms() - number, 1, false, false, id, id, 'default', 'job', 'job', array[id], '[]', '{}'
  from generate_series(1, ${ROWS}) as number cross join lateral (select gen_random_uuid() as id where number > 0) as made;
  insert into holdfast.history (finished_at, token, claimed_at, worker, size, has_large, queue, run_ms)
  select claimed_at, token, claimed_at, gen_random_uuid(), 1, false, 'default', '{1}' from holdfast.batch;
  insert into holdfast.queue (name, completed, dead, cancelled)
  values ('default', 2 * ${ROWS}, ${ROWS}, ${ROWS})`

describe.each(postgresVersions())('on PostgreSQL %s', (version) => {
  let database: Database
  let client: pg.Client

  beforeEach(async () => {
    database = await freshDatabase(sharedPostgres(version))
    client = new pg.Client({ connectionString: database.url })
    await client.connect()
    await client.query(schemaScript(readNames({})))
    await client.query(FILL)
  })

  afterEach(async () => {
    await client.end()
    await database.drop()
  })

  /** The largest number of finished jobs that one scan of a prune touches, and the number of jobs it deleted. */
  async function prune(...most: readonly (number | null)[]): Promise<{ rows: number; pruned: number }> {
    const before = await client.query<{ n: number }>(
      'select sum(completed + dead + cancelled)::integer as n from holdfast.queue_status',
    )
    const text = `select holdfast.prune(${DAY_MS}, ${DAY_MS}, ${DAY_MS}, $1, $2, $3, 100)`
    const scans = (await plansOf(client, text, most)).flatMap((plan) => scansOf(plan, FINISHED))
    const after = await client.query<{ n: number }>(
      'select sum(completed + dead + cancelled)::integer as n from holdfast.queue_status',
    )
    return { rows: Math.max(...scans.map(touched)), pruned: before.rows[0]!.n - after.rows[0]!.n }
  }

  test.each(['never analysed', 'analysed'])(
    'a prune of tables that were %s touches what it deletes',
    async (how) => {
      if (how === 'analysed') await client.query('analyze')
      // Often enough to get a generic plan.
      for (let round = 0; round < 7; round++) {
        expect(await prune(null, null, null)).toEqual({ rows: 0, pruned: 0 })
        const { rows, pruned } = await prune(
          2 * ROWS - 10 * (round + 1),
          ROWS - 10 * (round + 1),
          ROWS - 10 * (round + 1),
        )
        expect(pruned).toBe(30)
        expect(rows, 'of one table, in one scan').toBeLessThanOrEqual(200)
      }
    },
  )
})
