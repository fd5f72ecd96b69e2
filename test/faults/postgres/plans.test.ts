/**
 * The plans of the hot statements on a PostgreSQL with a million ready and a million scheduled jobs of mixed priorities, and
 * of lists on one that also has cancelled, dead, running and completed jobs: each finds its rows by an index, and touches
 * about as many as it takes. A plan that goes wrong on a large table shows here, and nowhere else before production.
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
/** Of each kind that lists and `get` go through besides. */
const OTHERS = 200_000
const WAITING: ReadonlySet<string> = new Set(['ready', 'scheduled'])
const ALL: ReadonlySet<string> = new Set([...WAITING, 'ended', 'dead', 'batch', 'history'])
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

/** Due times spread over the last and the next hour, with ten priorities. */
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

/** Ids over an hour, a few milliseconds apart, as clients make them. */
const AN_ID = `(select holdfast.id_at(made.at) as low_id, made.* from (
    select g, holdfast.now_ms() - 3600000 + g * 3600000::bigint / ${OTHERS} as at from generate_series(1, ${OTHERS}) as g
  ) as made) as made
  cross join lateral (select (left(low_id::text, 24) || right(gen_random_uuid()::text, 12))::uuid as id) as made_id`

/** Half of ended is cancelled. One dead letter in a thousand has the fingerprint 'rare'; small batches are completed. */
async function fillOthers(): Promise<void> {
  const facts = `json_build_array(id, 'job', 5, 0, 4, 3, null)`
  await client.query(`insert into holdfast.ended (id, finished_at, due_at, created_at, attempt, crashes, completed, queue, name,
      facts, payload)
    select id, at, at, at, 1, 0, g % 2 = 0, 'default', 'job', ${facts}, '{}' from ${AN_ID}`)
  await client.query(`insert into holdfast.dead (id, finished_at, due_at, created_at, attempt, crashes, priority, head_start,
      queue, name, fingerprint, error, facts, payload)
    select id, at, at, at, 1, 0, 5, 0, 'default', 'job', print, json_build_object('fingerprint', print), ${facts}, '{}'
    from ${AN_ID} cross join lateral (select case when g % 1000 = 0 then 'rare' else 'common' end as print) as print`)
  await client.query(`insert into holdfast.batch (token, claimed_at, size, has_large, wide, low, high, queue, first_name, last_name,
      ids, jobs, payloads)
    select -g, at, 1, false, false, id, id, 'default', 'job', 'job', array[id], '[' || at || ',' || ${facts} || ']', '{}'
    from ${AN_ID}`)
  await client.query(`insert into holdfast.history (finished_at, token, claimed_at, worker, size, has_large, queue, run_ms)
    select claimed_at, token, claimed_at, gen_random_uuid(), 1, false, queue, '{1}' from holdfast.batch where token < 0`)
  for (const table of ['ended', 'dead', 'batch', 'history'])
    await client.query(`vacuum analyze holdfast.${table}`)
}

/** Every scan uses an index or a tuple id, and touches no more rows than this. */
async function looksAtMost(
  rows: number,
  text: string,
  values: readonly unknown[] = [],
  tables = WAITING,
): Promise<void> {
  const scans = (await plansOf(client, text, values)).flatMap((plan) => scansOf(plan, tables))
  for (const scan of scans) {
    expect(scan['Node Type'], JSON.stringify(scan).slice(0, 500)).not.toBe('Seq Scan')
    expect(touched(scan), JSON.stringify(scan).slice(0, 500)).toBeLessThanOrEqual(rows)
  }
}

const LANES = '{0,1,2,3,4,5,6,7,8,9,10}'
const FROM_START = `{${Array(11).fill('-1000000000000000').join(',')}}`
const TO_END = `{${Array(11).fill('1000000000000000').join(',')}}`
const CLAIM = `select holdfast.cycle($1, null, null, null, null, null, null, null, null, false, 'default', $2, $3, $4, $5)`

/** The first page for a state, a fingerprint, and a time from which on jobs finished, newest or oldest first. */
const PAGE = `select * from holdfast.list_jobs($1::text::text[], null, null, $2::text::text[], null, $3, null, null, null,
  '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff', $4, 51, 200)`
const GROUPS = `select * from holdfast.dead_groups(null, null, $1::text::text[], null, $2, null, null, null,
  '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 50, 200)`

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
    await looksAtMost(0, 'select * from holdfast.heartbeat($1, null, null, null, null)', [worker])
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
    await looksAtMost(201, PAGE, [null, null, null, true])
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

describe('with many cancelled, dead and completed jobs besides', { timeout: 60_000 }, () => {
  beforeAll(fillOthers, 120_000)

  test.each([null, '{ready}', '{scheduled}', '{dead}', '{cancelled}', '{completed}', '{running}'])(
    'a page of state %s looks at a few rows of each table, from either end',
    async (states) => {
      for (const newestFirst of [true, false])
        await looksAtMost(210, PAGE, [states, null, null, newestFirst], ALL)
    },
  )

  test('cancelled jobs are found without those that completed, and the other way round within the budget', async () => {
    await client.query(`update holdfast.ended set completed = true where id > (select id from holdfast.ended
      order by id offset 100 limit 1)`)
    const { rows } = await client.query(PAGE, ['{cancelled}', null, null, true])
    expect(rows.filter(({ job }) => job !== null).length).toBeGreaterThan(40)
    await looksAtMost(201, PAGE, ['{cancelled}', null, null, true], ALL)
  })

  test('dead letters are found by fingerprint', async () => {
    await looksAtMost(200, PAGE, ['{dead}', '{rare}', null, true], ALL)
    await looksAtMost(200, GROUPS, ['{rare}', null], ALL)
    const { rows } = await client.query(GROUPS, ['{rare}', null])
    expect(rows[0]).toMatchObject({ looked: '200', dead_group: { fingerprint: 'rare', count: 50 } })
  })

  test('dead letters are found by the time they failed', async () => {
    const { rows } = await client.query<{ at: string }>(
      'select finished_at as at from holdfast.dead order by finished_at desc offset 150 limit 1',
    )
    const from = rows[0]?.at
    for (const newestFirst of [true, false])
      await looksAtMost(200, PAGE, ['{dead}', null, from, newestFirst], ALL)
    await looksAtMost(200, GROUPS, [null, from], ALL)
    const { rows: page } = await client.query(PAGE, ['{dead}', null, from, false])
    expect(page[0]).toMatchObject({ looked: '151' })
    expect(page.filter(({ job }) => job !== null)).toHaveLength(51)
  })

  test('a job that completed in a small batch, and one that is not there, are looked for among few batches', async () => {
    const { rows } = await client.query<{ id: string }>(
      'select ids[1] as id from holdfast.batch where token < 0 order by token offset 100000 limit 1',
    )
    const { rows: found } = await client.query('select state from holdfast.get_job($1)', [rows[0]?.id])
    expect(found).toEqual([{ state: 'completed' }])
    await looksAtMost(1, 'select * from holdfast.get_job($1)', [rows[0]?.id], ALL)
    // The same among leases with strays, left by the claims above.
    await looksAtMost(10, 'select * from holdfast.get_job($1)', [ids.job()], ALL)
  })

  test('a page of running jobs unpacks no more batches than it has jobs', async () => {
    const { leases } = await store.cycle({
      worker,
      settle: [],
      claim: { queue: 'default', limit: 1_000, suspects: false },
    })
    expect(leases[0]?.jobs).toHaveLength(1_000)
    const { rows } = await client.query(PAGE, ['{running}', null, null, true])
    expect(rows).toHaveLength(51)
    expect(Number(rows[0]?.looked)).toBeLessThanOrEqual(201)
    await looksAtMost(201, PAGE, ['{running}', null, null, true], ALL)
  })
})

function enqueueText(): string {
  return `select holdfast.enqueue($1, $2, '{default}', '{job}', '{5}', '{0}', null, null, '["x","job",5,0,4,3,null]', '{}')`
}
