/**
 * A rolling deploy: processes of the version before, whose schema ended with migration 0008, go on beside new ones. What
 * they send stands here as they send it, prepared before the schema moves on under them.
 */
import { Client } from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  freshDatabase,
  postgresVersions,
  sharedPostgres,
  type Database,
} from '../../../test/support/servers/database.ts'
import { makeIds, type JobId, type Token, type WorkerId } from '../../job/ids.ts'
import { systemClock } from '../../std/clock.ts'
import { systemRandom } from '../../std/random.ts'
import type { Store } from '../store.ts'
import { appliedSql, ledgerSql, readMigrations } from './migrations.ts'
import { readNames } from './names.ts'
import { postgresStore } from './postgres-store.ts'

const ids = makeIds(systemClock, systemRandom)
const names = readNames({})
const OLD_VERSION = 8

const CYCLE = `select * from holdfast.cycle($1::uuid, $2::text::bigint[], $3::text::text[], $4::text::integer[],
  $5::text::text[], $6::text::bigint[], $7::text::bigint[], $8::text::text[], $9::text::boolean[], $10::boolean,
  $11::text, $12::integer, $13::text::smallint[], $14::text::bigint[])`
const GET = `select job.*, long.body as long_payload from holdfast.job_record as job
  left join holdfast.payload as long on long.id = job.id where job.id = $1::uuid`
const CHANGE = 'select holdfast.change($1::text::uuid[], $2::text, $3::text) as changed'
const TAKE = 'select * from holdfast.take_orphans($1::integer)'
const PLACE = 'select holdfast.place_orphans($1::text::json)'

const ERROR = {
  kind: 'transient',
  name: 'Error',
  message: 'no',
  code: null,
  stack: null,
  fingerprint: 'f1',
  attempt: 1,
}

interface OrphanRow {
  readonly token: string
  readonly queue: string
  readonly job: readonly [number, readonly [JobId]]
  readonly said: unknown
}

describe.each(postgresVersions())('a process of the version before, on PostgreSQL %i', (version) => {
  let database: Database
  let client: Client
  let store: Store
  let worker: WorkerId

  beforeEach(async () => {
    database = await freshDatabase(sharedPostgres(version))
    client = new Client({ connectionString: database.url })
    await client.connect()
    await client.query(ledgerSql(names))
    for (const migration of readMigrations(names)) {
      if (migration.version <= OLD_VERSION) await client.query(appliedSql(migration, names))
    }
    store = postgresStore({ url: database.url })
    worker = ids.worker()
    await client.query('insert into holdfast.worker values ($1, 60000, holdfast.now_ms() + 60000)', [worker])
  })
  afterEach(async () => {
    await store.close()
    await client.end()
    await database.drop()
  })

  const send = async <Row extends object>(
    name: string,
    text: string,
    values: readonly unknown[],
  ): Promise<Row[]> => (await client.query<Row>({ name, text, values: [...values] })).rows
  const add = async (): Promise<JobId> => {
    const [row] = await send<{ id: JobId }>('add', `select holdfast.add_job('mail', '{}') as id`, [])
    return row!.id
  }
  const claim = async (): Promise<Token> => {
    const nothing = Array<null>(8).fill(null)
    const values = [worker, ...nothing, null, 'default', 1, '{5}', '{-1000000000000000}']
    const [row] = await send<{ token: Token }>('cycle', CYCLE, values)
    return row!.token
  }
  const settle = async (token: Token, kind: string | null, detail: string | null): Promise<unknown> => {
    const kinds = kind === null ? null : `{${kind}}`
    const delays = kind === 'retry' ? '{1000}' : null
    const details = detail === null ? null : `{${JSON.stringify(detail)}}`
    const values = [worker, `{${token}}`, '{1}', '{0}', kinds, delays, '{7}', details, null, false]
    const [row] = await send<{ settled: unknown }>('cycle', CYCLE, [...values, null, null, null, null])
    return row!.settled
  }
  const complete = async (): Promise<JobId> => {
    const id = await add()
    await settle(await claim(), null, null)
    return id
  }

  test('has its jobs read, though nobody knows who completed them', async () => {
    const id = await complete()
    await store.open()
    expect(await store.admin.get(id)).toMatchObject({
      state: 'completed',
      worker: '00000000-0000-0000-0000-000000000000',
      attempts: [],
      runMs: 7,
    })
  })

  test('goes on claiming, settling and looking on the new schema', async () => {
    const before = await complete()
    await send('get', GET, [before])
    await store.open()
    const completed = await complete()
    const retried = await add()
    expect(await settle(await claim(), 'retry', JSON.stringify(ERROR))).toHaveLength(1)
    expect(await send('get', GET, [before])).toHaveLength(1)
    expect(await store.admin.get(completed)).toMatchObject({ state: 'completed', worker, attempts: [] })
    expect(await store.admin.get(retried)).toMatchObject({ state: 'scheduled', error: ERROR, attempts: [] })
  })

  test('goes on rescuing, without a record of the crash', async () => {
    const id = await add()
    await claim()
    await store.open()
    await client.query('update holdfast.worker set expires_at = 0')
    const orphans = await send<OrphanRow>('take', TAKE, [10])
    const placed = orphans.map(({ token, queue, job, said }) => {
      const outcome = { kind: 'scheduled', delay: 1000, error: ERROR, reason: null, crashes: 1 }
      return { id, token, queue, job, said, ...outcome }
    })
    await send('place', PLACE, [JSON.stringify(placed)])
    expect(await store.admin.get(id)).toMatchObject({ state: 'scheduled', crashes: 1, attempts: [] })
  })

  test('goes on replaying', async () => {
    const id = await add()
    await settle(await claim(), 'dead', JSON.stringify(ERROR))
    await store.open()
    expect(await send('change', CHANGE, [`{${id}}`, 'replay', null])).toEqual([{ changed: 1 }])
    expect(await store.admin.get(id)).toMatchObject({ state: 'ready', attempt: 0, payload: '{}' })
  })
})
