/** What PostgreSQL says no to, as users of Holdfast see it: told at once, under its own code, and no outage. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { holdfast } from 'holdfast'
import { postgresStore } from 'holdfast/postgres'
import { withClient } from '../support/servers/client.ts'
import { freshDatabase, sharedPostgres, type Database } from '../support/servers/database.ts'

let database: Database
beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
})
afterAll(() => database.drop())

const run = (sql: string) => withClient(database.url, (client) => client.query(sql))
const freshName = (what: string): string => `${what}_${randomBytes(6).toString('hex')}`

function open(options: { url?: string; schema?: string } = {}) {
  const store = postgresStore({ url: database.url, onNotice: () => undefined, ...options })
  const hf = holdfast({ store, logger: false })
  const told: string[] = []
  hf.on('store.down', () => void told.push('store.down'))
  hf.on('store.unusable', () => void told.push('store.unusable'))
  return { hf, told }
}

/** From now on the server refuses every row of the schema in which this word stands. */
async function poison(schema: string, word: string, sqlstate: string): Promise<void> {
  await run(`
    create function ${schema}.poison() returns trigger language plpgsql as $$
    begin
      if to_jsonb(new)::text like '%${word}%' then
        raise exception 'a row is refused' using errcode = '${sqlstate}';
      end if;
      return new;
    end $$`)
  const tables = await run(
    `select relname from pg_class join pg_namespace on pg_namespace.oid = relnamespace
     where nspname = '${schema}' and relkind in ('r', 'p') and not relispartition`,
  )
  for (const { relname } of tables.rows as { relname: string }[]) {
    await run(`create trigger poison before insert or update on ${schema}."${relname}"
               for each row execute function ${schema}.poison()`)
  }
}

/** A user who may log in and nothing else, and the URL by which it does. */
async function newUser(options = 'login'): Promise<{ name: string; url: string }> {
  const name = freshName('user')
  await run(`create role ${name} ${options} password 'pw'`)
  const url = new URL(database.url)
  url.username = name
  url.password = 'pw'
  return { name, url: url.href }
}

describe('a database', () => {
  test('that is not there is told at once', async () => {
    const { hf, told } = open({ url: database.url.replace(/[^/]+$/, 'no_such_database') })
    const job = hf.job({ name: 'job', run: () => undefined })
    const missing = { code: 'HF_STORE_MISSING', message: expect.stringContaining('no_such_database') }
    await expect(job.enqueue()).rejects.toMatchObject(missing)
    await expect(hf.work()).rejects.toMatchObject(missing)
    expect(told).toEqual(['store.unusable'])
    await hf.close()
  })

  test('that does not let the user in is told at once', async () => {
    const { url } = await newUser('nologin')
    const { hf, told } = open({ url })
    const job = hf.job({ name: 'job', run: () => undefined })
    await expect(job.enqueue()).rejects.toMatchObject({ code: 'HF_STORE_DENIED' })
    expect(told).toEqual(['store.unusable'])
    await hf.close()
  })

  test('in which the user may create nothing is told at once', async () => {
    const { url } = await newUser()
    const { hf, told } = open({ url, schema: freshName('denied') })
    const job = hf.job({ name: 'job', run: () => undefined })
    await expect(job.enqueue()).rejects.toMatchObject({
      code: 'HF_STORE_DENIED',
      message: expect.stringContaining('42501'),
    })
    expect(told).toEqual(['store.unusable'])
    await hf.close()
  })

  test('that takes a right away from a worker is used again when it gives it back', async () => {
    const schema = freshName('revoked')
    const { name, url } = await newUser()
    await run(`create schema ${schema} authorization ${name}`)
    await run(`grant create on database ${new URL(database.url).pathname.slice(1)} to ${name}`)
    const { hf, told } = open({ url, schema })
    const job = hf.job({ name: 'job', run: () => 'done' })
    const before = await job.enqueue()
    await hf.work()
    expect(await before.result()).toBe('done')
    await run(`alter schema ${schema} owner to current_user`)
    await run(`revoke all on schema ${schema} from ${name}`)
    await expect(job.enqueue()).rejects.toMatchObject({ code: 'HF_STORE_DENIED' })
    await run(`grant all on schema ${schema} to ${name}`)
    const after = await job.enqueue()
    expect(await after.result()).toBe('done')
    expect(told).toEqual(['store.unusable'])
    await hf.close()
  })

  test('whose encoding is not UTF8 is refused at the opening', async () => {
    const name = freshName('latin')
    await run(`create database ${name} encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' template template0`)
    const { hf } = open({ url: database.url.replace(/[^/]+$/, name) })
    const job = hf.job({ name: 'job', run: () => undefined })
    await expect(job.enqueue()).rejects.toMatchObject({
      code: 'HF_BAD_STORE',
      message: expect.stringContaining('LATIN1'),
    })
    await hf.close()
    await run(`drop database ${name} with (force)`)
  })

  test('whose disk is full refuses an enqueue at once, and takes it later', async () => {
    const schema = freshName('full')
    const { hf, told } = open({ schema })
    const job = hf.job({ name: 'job', input: z.string(), run: () => undefined })
    await job.enqueue('first')
    await poison(schema, 'large', '53100')
    await expect(job.enqueue('large')).rejects.toMatchObject({
      code: 'HF_STORE_FULL',
      hint: expect.stringContaining('disk'),
    })
    expect(told).toEqual(['store.unusable'])
    await run(`drop function ${schema}.poison() cascade`)
    await job.enqueue('large')
    await hf.close()
  })
})

describe('a schema that something else has changed', () => {
  test.each([
    ['by a trigger that raises an error', 'P0001', (schema: string) => poison(schema, 'later', 'P0001')],
    [
      'by renaming a column',
      '42703',
      (schema: string) => run(`alter table ${schema}.ready rename column rank to other`),
    ],
  ])('%s is told at once, and is no outage', async (_, sqlstate, damage) => {
    const schema = freshName('changed')
    const { hf, told } = open({ schema })
    const job = hf.job({ name: 'job', input: z.string(), run: () => undefined })
    await job.enqueue('first')
    await damage(schema)
    await expect(job.enqueue('later')).rejects.toMatchObject({
      code: 'HF_STORE_CONTRACT',
      message: expect.stringContaining(`SQLSTATE ${sqlstate}`),
      hint: expect.stringContaining('schema'),
    })
    expect(told).toEqual([])
    await hf.close()
  })
})

describe.each(['22021', '54000'])('a value that the database refuses with %s', (sqlstate) => {
  const doubled = { name: 'double', input: z.string(), run: ({ input }: { input: string }) => input + input }

  test('as a result makes its job a dead letter; the others of the call complete', async () => {
    const schema = freshName('poisoned')
    const { hf, told } = open({ schema })
    const job = hf.job({ ...doubled, retry: { attempts: 1 } })
    await hf.deadLetters.list()
    await poison(schema, 'badbad', sqlstate)
    const handles = await Promise.all(['a', 'b', 'bad', 'c', 'd'].map((input) => job.enqueue(input)))
    await hf.work({ concurrency: 5 })
    const ends = await Promise.allSettled(handles.map((handle) => handle.result({ timeout: '20s' })))
    expect(ends.map((end) => (end.status === 'fulfilled' ? end.value : end.reason.code))).toEqual([
      'aa',
      'bb',
      'HF_JOB_FAILED',
      'cc',
      'dd',
    ])
    const { letters } = await hf.deadLetters.list()
    expect(letters).toMatchObject([
      { id: handles[2]!.id, error: { code: 'HF_STORE_REFUSED', kind: 'permanent' } },
    ])
    expect(letters[0]?.error.message).toContain(`SQLSTATE ${sqlstate}`)
    expect(told).toEqual([])
    await hf.close()
  })

  test('at an enqueue is told at once', async () => {
    const schema = freshName('poisoned')
    const { hf, told } = open({ schema })
    const job = hf.job(doubled)
    await job.enqueue('good')
    await poison(schema, 'rotten', sqlstate)
    await expect(job.enqueue('rotten')).rejects.toMatchObject({ code: 'HF_STORE_REFUSED' })
    expect(told).toEqual([])
    await hf.close()
  })

  test('in a commit() of a handler fails its job for good; an error of its own statements is its own', async () => {
    const schema = freshName('poisoned')
    const { hf } = open({ schema })
    const thrown: unknown[] = []
    const job = hf.job({
      name: 'pay',
      input: z.string(),
      run: async ({ input, commit }) => {
        try {
          await commit(async (tx) => {
            if (input === 'own') await tx.query("select 'x'::int")
            return input + input
          })
        } catch (error) {
          thrown.push(error)
          throw error
        }
      },
    })
    await hf.deadLetters.list()
    await poison(schema, 'badbad', sqlstate)
    await hf.work({ concurrency: 1 })
    const handle = await job.enqueue('bad')
    await expect(handle.result({ timeout: '20s' })).rejects.toMatchObject({ code: 'HF_JOB_FAILED' })
    expect(thrown).toMatchObject([{ code: 'HF_STORE_REFUSED' }])
    const own = await job.enqueue('own', { retry: { attempts: 1 } })
    await expect(own.result({ timeout: '20s' })).rejects.toMatchObject({ code: 'HF_JOB_FAILED' })
    expect(thrown[1]).toMatchObject({ code: '22P02' })
    await hf.close()
  })
})
