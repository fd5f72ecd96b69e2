/** holdfast.add_job: enqueues by SQL alone, on the newest and the oldest PostgreSQL. */
import type { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withClient } from '../../../test/support/servers/client.ts'
import {
  freshDatabase,
  sharedPostgres,
  type Database,
  postgresVersions,
} from '../../../test/support/servers/database.ts'
import { thrownBy } from '../../../test/support/virtual.ts'
import { makeIds } from '../../job/ids.ts'
import type { NewJob } from '../../job/record.ts'
import { systemClock } from '../../std/clock.ts'
import { systemRandom } from '../../std/random.ts'
import type { Store } from '../store.ts'
import { readNames, render } from './names.ts'
import { postgresStore } from './postgres-store.ts'

const ids = makeIds(systemClock, systemRandom)

describe.each(
  (
    [
      { version: 18, names: readNames({}) },
      { version: 13, names: readNames({ schema: 'Jobs', prefix: 'hf_' }) },
    ] as const
  ).filter(({ version }) => postgresVersions().includes(version)),
)('add_job on PostgreSQL $version', ({ version, names }) => {
  let database: Database
  let store: Store
  beforeAll(async () => {
    database = await freshDatabase(sharedPostgres(version))
    store = postgresStore({ url: database.url, ...names })
    await store.open()
  }, 30_000)
  afterAll(async () => {
    await store.close()
    await database.drop()
  }, 30_000)

  const sql = async <Row extends object>(text: string, on?: Client): Promise<Row[]> => {
    const run = async (client: Client): Promise<Row[]> => (await client.query<Row>(render(text, names))).rows
    return on === undefined ? withClient(database.url, run) : run(on)
  }
  const add = async (args: string, on?: Client): Promise<string> => {
    const [row] = await sql<{ id: string }>(`select holdfast.add_job(${args}) as id`, on)
    return row!.id
  }
  const read = (id: string) => store.admin.get(id as NewJob['id'])
  /** As a client writes one, in a queue of its own. */
  const written = async (job: Partial<NewJob>): Promise<{ id: string; outcome: string }> => {
    const full: NewJob = {
      id: ids.job(),
      name: 'mail',
      queue: 'default',
      payload: '{}',
      priority: 5,
      headStartMs: 300_000,
      maxAttempts: 4,
      maxCrashes: 3,
      group: null,
      limits: [],
      envelope: { correlationId: null, tags: [], metadata: {}, retry: null, timeoutMs: null },
      due: { inMs: 0 },
      unique: null,
      ...job,
    }
    const [answer] = await store.enqueue({ id: ids.flush(), jobs: [full] })
    return answer!
  }

  test('writes what a client would write', async () => {
    const payload = `{"to": "ada", "n" : [1.50, "é\\u00fc\\\\"]}`
    const mine = await read(await add(`'mail', '${payload}'`))
    const theirs = await read((await written({ payload })).id)
    const times = { id: expect.any(String), createdAt: expect.any(Number), dueAt: expect.any(Number) }
    expect(mine).toEqual({ ...theirs, ...times })
    expect(mine).toMatchObject({ state: 'ready', payload, priority: 5, headStartMs: 300_000, maxAttempts: 4 })
  })

  test('takes options by name', async () => {
    const id = await add(
      `'mail', 'null', queue => 'slow', priority => 9, run_at => '2100-01-01T00:00:00Z', max_attempts => 1`,
    )
    expect(await read(id)).toMatchObject({
      state: 'scheduled',
      queue: 'slow',
      priority: 9,
      headStartMs: 540_000,
      dueAt: Date.UTC(2100, 0, 1),
      maxAttempts: 1,
    })
    expect(await read(await add(`'mail', null, run_at => '2000-01-01'`))).toMatchObject({
      state: 'ready',
      payload: 'null',
    })
  })

  test('makes ids of version 7 that keep the order of one transaction', async () => {
    const rows = await sql<{ id: string }>(
      `select holdfast.add_job('many', '{}', queue => 'ordered') as id from generate_series(1, 200)`,
    )
    const made = rows.map(({ id }) => id)
    expect(made).toEqual([...made].sort())
    const [first] = made
    expect(first).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    const ms = Number.parseInt(first!.replaceAll('-', '').slice(0, 12), 16)
    expect(Math.abs(ms - (await read(first!))!.createdAt)).toBeLessThan(60_000)
  })

  test('gives a claim its long payload', async () => {
    const id = await add(`'long', json_build_object('text', repeat('x', 200000)), queue => 'long'`)
    const worker = ids.worker()
    await store.register(worker, 30_000)
    const claim = { queue: 'long', limit: 10, suspects: true }
    const { leases } = await store.cycle({ worker, settle: [], claim })
    expect(leases.flatMap(({ jobs }) => jobs)).toMatchObject([{ id, name: 'long', attempt: 1 }])
    expect(JSON.parse(leases[0]!.jobs[0]!.payload)).toEqual({ text: 'x'.repeat(200_000) })
  })

  test('holds and meets the same unique keys as clients do', async () => {
    const unique = (key: string): Partial<NewJob> => ({
      unique: { key, hold: { while: 'unfinished' }, onConflict: 'ignore' },
    })
    const first = await add(`'mail', '{"n":1}', unique_key => 'a b'`)
    expect(await add(`'mail', '{"n":2}', unique_key => 'a b'`)).toBe(first)
    expect(await written(unique('mail a b'))).toEqual({ id: first, outcome: 'duplicate' })
    expect(await read(first)).toMatchObject({ payload: '{"n":1}', uniqueKey: 'mail a b' })
    const theirs = await written(unique('mail c'))
    expect(await add(`'mail', '{}', unique_key => 'c'`)).toBe(theirs.id)
    // Apart for each job name.
    expect(await add(`'post', '{}', unique_key => 'c'`)).not.toBe(theirs.id)
  })

  test('from a trigger: the job is there if and only if the row is', async () => {
    await sql('create table orders (id integer primary key)')
    await sql(`
      create function ship() returns trigger language plpgsql as $$
      begin
        perform holdfast.add_job('ship', json_build_object('order', new.id), unique_key => new.id::text);
        return null;
      end $$`)
    await sql('create trigger ship after insert on orders for each row execute function ship()')
    const shipped = async (): Promise<string[]> => {
      const { jobs } = await store.admin.list({ names: ['ship'], limit: 10, after: null })
      return jobs.map(({ payload }) => payload)
    }
    await withClient(database.url, async (client) => {
      await client.query('begin')
      await client.query('insert into orders values (1)')
      await client.query('rollback')
      expect(await shipped()).toEqual([])
      await client.query('begin')
      await client.query('insert into orders values (2), (3)')
      expect(await shipped()).toEqual([])
      await client.query('commit')
    })
    expect(await shipped()).toEqual(['{"order" : 3}', '{"order" : 2}'])
  })

  test.each([
    [`'', '{}'`, "job_type must be a name of 1 to 200 characters without white space, not ''"],
    [`null, '{}'`, 'job_type must be a name of 1 to 200 characters without white space, not NULL'],
    [`'send mail', '{}'`, 'without white space'],
    [`'mail', '{}', priority => 10`, 'priority must be a number from 0 to 9, not 10'],
    [`'mail', '{}', priority => -1`, 'priority must be a number from 0 to 9, not -1'],
    [`'mail', '{}', priority => 2000000000`, 'priority must be a number from 0 to 9, not 2000000000'],
    [`'mail', '{}', priority => null`, 'priority must be a number from 0 to 9, not null'],
    [`'mail', '{}', max_attempts => 0`, 'max_attempts must be a number from 1 to 32767, not 0'],
    [`'mail', '{}', queue => ''`, "queue must be a name of 1 to 100 characters without white space, not ''"],
    [`'mail', '{}', run_at => 'infinity'`, 'run_at must be a time, not infinity'],
    [`'mail', '{}', unique_key => ''`, 'unique_key must be a text of 1 to 512 characters'],
    [`'mail', to_json(repeat('x', 262143))`, 'the payload of job mail has 262145 bytes, more than 262144'],
    [`'mail', 'no json'`, 'invalid input syntax for type json'],
  ])('refuses add_job(%s)', async (args, message) => {
    const refusal = await thrownBy(add(args))
    expect(refusal).toMatchObject({ message: expect.stringContaining(message), severity: 'ERROR' })
  })
})
