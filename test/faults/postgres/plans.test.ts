/**
 * The plans of the hot statements on a PostgreSQL with a million ready and a million scheduled jobs of mixed priorities:
 * each finds its rows by an index, and touches about as many as it takes. A plan that goes wrong on a large table shows
 * here, and nowhere else before production.
 */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { NewJob } from '../../../src/job/record.ts'
import type { WorkerId } from '../../../src/job/ids.ts'
import type { Executor } from '../../../src/stores/postgres/executor.ts'
import { pgExecutor } from '../../../src/stores/postgres/pg/pg-executor.ts'
import { readNames } from '../../../src/stores/postgres/names.ts'
import { sqlStore } from '../../../src/stores/postgres/sql-store.ts'
import type { Store } from '../../../src/stores/store.ts'
import { systemClock } from '../../../src/std/clock.ts'
import { systemRandom } from '../../../src/std/random.ts'
import { makeIds } from '../../../src/job/ids.ts'
import { freshDatabase, sharedPostgres, type Database } from '../../support/servers/database.ts'
import { plansOf, scansOf, touched } from './support/plans.ts'

const ROWS = 1_000_000
const BIG_TABLES: ReadonlySet<string> = new Set(['ready', 'scheduled'])
const ids = makeIds(systemClock, systemRandom)

let database: Database
let executor: Executor
let store: Store
let worker: WorkerId
let client: pg.Client

beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
  executor = pgExecutor({ connectionString: database.url })
  const names = readNames({})
  store = sqlStore({
    kind: 'postgres',
    executor,
    names,
    migrate: true,
    clock: systemClock,
    random: systemRandom,
  })
  await store.open()
  client = new pg.Client({ connectionString: database.url })
  await client.connect()
  await fill()
  worker = ids.worker()
  await store.register(worker, 600_000)
}, 240_000)

afterAll(async () => {
  await client?.end()
  await executor?.close()
  await database?.drop()
})

/** Due over the last and the next hour, over ten priorities, as they would be. */
async function fill(): Promise<void> {
  const facts = `json_build_array(id, 'job', priority, priority * 60000, 4, 3, null)`
  for (const [table, sign, columns, values] of [
    ['ready', -1, 'rank, lane', 'due - priority * 60000, priority'],
    ['scheduled', 1, 'head_start', 'priority * 60000'],
  ] as const) {
    await client.query(`insert into holdfast.${table} (id, due_at, created_at, priority, queue, name, facts, payload, ${columns})
      select id, due, due, priority, 'default', 'job', ${facts}, '{}', ${values}
      from (select gen_random_uuid() as id, holdfast.now_ms() + ${sign} * (g * 3600000::bigint / ${ROWS}) as due,
        (g % 10)::smallint as priority from generate_series(1, ${ROWS}) as g) as job`)
    await client.query(`vacuum analyze holdfast.${table}`)
  }
}

/** By an index or by place, and no more rows than this in one scan. */
async function looksAtMost(rows: number, text: string, values: readonly unknown[] = []): Promise<void> {
  const scans = (await plansOf(client, text, values)).flatMap((plan) => scansOf(plan, BIG_TABLES))
  for (const scan of scans) {
    expect(scan['Node Type'], JSON.stringify(scan).slice(0, 500)).not.toBe('Seq Scan')
    expect(touched(scan), JSON.stringify(scan).slice(0, 500)).toBeLessThanOrEqual(rows)
  }
}

const LANES = '{0,1,2,3,4,5,6,7,8,9,10}'
const FROM_START = `{${Array(11).fill('-1000000000000000').join(',')}}`
const TO_END = `{${Array(11).fill('1000000000000000').join(',')}}`
const CLAIM = `select holdfast.cycle($1, null, null, null, null, null, null, null, null, false, 'default', $2, $3, $4, $5)`

const PAGE = `select * from holdfast.list_jobs(null, null, null, null, null, null, null, null, null,
  '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff', true, 51, 200)`

describe('with a million ready and a million scheduled jobs', { timeout: 60_000 }, () => {
  test('a sweep over all lanes looks at no more than the limit in each', async () => {
    await looksAtMost(11 * 50, CLAIM, [worker, 50, LANES, FROM_START, TO_END])
  })

  test('a claim from a mark in one lane looks at what it takes', async () => {
    await looksAtMost(200, CLAIM, [worker, 100, '{5}', '{-1000000000000000}', '{1000000000000000}'])
  })

  test('the same by a plan that serves all values', async () => {
    await client.query('set plan_cache_mode = force_generic_plan')
    await looksAtMost(11 * 50, CLAIM, [worker, 50, LANES, FROM_START, TO_END])
    await client.query('reset plan_cache_mode')
  })

  test('a promote looks at as many as it may move, and at the next one', async () => {
    await looksAtMost(100, 'select * from holdfast.promote(100)')
  })

  test('an enqueue looks at nothing', async () => {
    await looksAtMost(0, enqueueText(), [ids.flush(), `{${ids.job()}}`])
  })

  test('settling, heartbeat and rescue look at none of the waiting', async () => {
    await looksAtMost(0, 'select * from holdfast.heartbeat($1, null, null, null)', [worker])
    await looksAtMost(0, 'begin; select * from holdfast.lock_crashed(100); rollback')
    const { leases } = await store.cycle({
      worker,
      settle: [],
      claim: { queue: 'default', limit: 100, suspects: false },
    })
    const token = leases[0]?.token
    await looksAtMost(0, `select holdfast.settle($1, $2, $3, null, null, $4, null, null, null, false)`, [
      worker,
      `{${token}}`,
      `{${'1'.repeat(100)}}`,
      `{${Array(100).fill(1).join(',')}}`,
    ])
  })

  test('a look at one job, a cancel and the first page look at a few rows', async () => {
    const { rows } = await client.query<{ id: string }>('select id from holdfast.ready offset 500000 limit 1')
    const id = rows[0]?.id
    await looksAtMost(1, 'select * from holdfast.get_job($1)', [id])
    await looksAtMost(1, 'select holdfast.cancel($1, null, null)', [id])
    await looksAtMost(201, PAGE)
  })

  test('and the store itself is quick with it', async () => {
    const job: NewJob = {
      id: ids.job(),
      name: 'job',
      queue: 'other',
      payload: '{}',
      priority: 5,
      headStartMs: 0,
      maxAttempts: 1,
      maxCrashes: 1,
      group: null,
      limits: [],
      envelope: { correlationId: null, tags: [], metadata: {}, retry: null, timeoutMs: null },
      due: { inMs: 0 },
      unique: null,
    }
    await store.enqueue({ id: ids.flush(), jobs: [job] })
    const { leases } = await store.cycle({
      worker,
      settle: [],
      claim: { queue: 'other', limit: 10, suspects: true },
    })
    expect(leases[0]?.jobs[0]?.id).toBe(job.id)
  })
})

function enqueueText(): string {
  return `select holdfast.enqueue($1, $2, '{default}', '{job}', '{5}', '{0}', null, null, '["x","job",5,0,4,3,null]', '{}')`
}
