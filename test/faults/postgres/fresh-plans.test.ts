/**
 * The plans of the hot statements do not depend on statistics. On a database that was never analysed, or was analysed while
 * it was empty, the planner takes every table for tiny: a plan that reads a whole table is cheap then, is kept, and reads
 * every dead row ever after. So each hot statement is run early and often, while the tables fill, and its plans are looked
 * at in the end, on the connection that made them.
 */
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { makeIds } from '../../../src/job/ids.ts'
import { readNames } from '../../../src/stores/postgres/names.ts'
import { schemaScript } from '../../../src/stores/postgres/schema.ts'
import { systemClock } from '../../../src/std/clock.ts'
import { systemRandom } from '../../../src/std/random.ts'
import { freshDatabase, sharedPostgres, type Database } from '../../support/servers/database.ts'
import { plansOf, scansOf } from './support/plans.ts'

const ids = makeIds(systemClock, systemRandom)
/** count_change and queue are read as a whole, on purpose: by the upkeep and by hf.queues() alone. */
const HOT: ReadonlySet<string> = new Set([
  'ready',
  'scheduled',
  'lease',
  'batch',
  'history',
  'payload',
  'worker',
  'intake',
  'unique_key',
  'revoked',
])

let database: Database
let client: pg.Client

beforeEach(async () => {
  database = await freshDatabase(sharedPostgres(18))
  client = new pg.Client({ connectionString: database.url })
  await client.connect()
  await client.query(schemaScript(readNames({})))
  // What the tests forbid must not be hidden by a background process that happens to come along.
  for (const table of HOT)
    if (table !== 'batch' && table !== 'history')
      await client.query(`alter table holdfast.${table} set (autovacuum_enabled = off)`)
})

afterEach(async () => {
  await client.end()
  await database.drop()
})

const LOWEST = '-1000000000000000'
const HIGHEST = '1000000000000000'
const JOBS = 200
const ROUNDS = 40

function enqueue(keyed: boolean): [text: string, values: unknown[]] {
  const jobs = Array.from({ length: JOBS }, () => ids.job())
  if (keyed) {
    const columns = { queue: 'default', name: 'job', priority: 5, head_start: 0, due_in: 0, hold: 0 }
    const rows = jobs.map((id) => {
      const facts = [id, 'job', 5, 0, 4, 3, null]
      return { ...columns, id, key: id, on_conflict: 'ignore', payload: '{}', facts }
    })
    return ['select holdfast.enqueue_unique($1, $2)', [ids.flush(), JSON.stringify(rows)]]
  }
  const facts = jobs.map((id) => JSON.stringify([id, 'job', 5, 0, 4, 3, null])).join('\n')
  const payloads = jobs.map((_, at) => JSON.stringify('x'.repeat(at % 2 === 0 ? 10 : 1_000))).join('\x1e')
  return [
    `select holdfast.enqueue($1, $2, '{default}', '{job}', '{5}', '{0}', null, null, $3, $4)`,
    [ids.flush(), `{${jobs.join(',')}}`, facts, payloads],
  ]
}

function cycle(worker: string, settles: readonly unknown[]): [text: string, values: unknown[]] {
  const [leases = null, masks = null, kinds = null, delays = null, details = null, runs = null] = settles
  return [
    `select holdfast.cycle($1, $2, $3, $4, $5, $6, $7, null, null, false, 'default', ${JOBS}, '{5,10}',
      '{${LOWEST},${LOWEST}}', '{${HIGHEST},${HIGHEST}}') as answer`,
    [worker, leases, masks, kinds, delays, runs, details],
  ]
}

const ERROR = JSON.stringify({
  kind: 'transient',
  name: 'Error',
  message: 'no',
  fingerprint: 'f',
  attempt: 1,
})

/** Completes most jobs of a lease and fails one of ten. */
function settlesOf(answer: string): unknown[] {
  const [, claim] = answer.split('\x1c')
  const [token, , jobs] = (claim ?? '').split('\x1d')
  if (token === undefined || jobs === undefined) return []
  const size = (JSON.parse(`[${jobs}]`) as unknown[]).length
  const list = (of: (at: number) => string): string =>
    `{${Array.from({ length: size }, (_, at) => of(at)).join(',')}}`
  const quoted = JSON.stringify(ERROR)
  return [
    `{${token}}`,
    `{${'1'.repeat(size)}}`,
    list((at) => (at % 10 === 0 ? 'retry' : 'completed')),
    list(() => '1'),
    list((at) => (at % 10 === 0 ? quoted : 'null')),
    list(() => '1'),
  ]
}

describe.each(['never analysed', 'analysed while empty'])('on a database that was %s', (how) => {
  test(
    'no hot statement reads a whole table, however long its plan is kept',
    { timeout: 120_000 },
    async () => {
      if (how === 'analysed while empty') await client.query('analyze')
      const worker = ids.worker()
      await client.query(`insert into holdfast.worker values ($1, 60000, holdfast.now_ms() + 60000)`, [
        worker,
      ])
      const hot = async (): Promise<[string, unknown[]][]> => {
        const { rows } = await client.query<{ answer: string }>(...cycle(worker, []))
        return [
          enqueue(false),
          enqueue(true),
          cycle(worker, settlesOf(rows[0]?.answer ?? '')),
          ['select * from holdfast.promote(100)', []],
          ['select * from holdfast.heartbeat($1, null, null, null)', [worker]],
        ]
      }
      // An old transaction keeps every dead row in place.
      const old = new pg.Client({ connectionString: database.url })
      await old.connect()
      await old.query('begin isolation level repeatable read; select txid_current()')
      try {
        for (let round = 0; round < ROUNDS; round++)
          for (const [text, values] of await hot()) await client.query(text, values)
        for (const [text, values] of await hot()) {
          const scans = (await plansOf(client, text, values)).flatMap((plan) => scansOf(plan, HOT))
          for (const scan of scans)
            expect(scan['Node Type'], `${text}: ${JSON.stringify(scan).slice(0, 500)}`).not.toBe('Seq Scan')
        }
      } finally {
        await old.end()
      }
    },
  )
})
