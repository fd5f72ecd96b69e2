/** Enqueues in the caller's own transaction, on a real PostgreSQL through the real libraries. */
import { HoldfastError, holdfast, PartialEnqueueError } from 'holdfast'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, sharedPostgres, type Database } from '../support/servers/database.ts'
import { withClient } from '../support/servers/client.ts'
import { thrownBy } from '../support/virtual.ts'
import { libraries, type Connected } from './libraries.ts'

/** All that some layer might take for its own: parameters, escapes, quotes, and more than 2 kB of it. */
const TRICKY = `?? ? $1 $2 :name \\? \\ " ' {} NULL \n\t ü 🙂 ${'x'.repeat(3_000)}`

/** What is prepared on a connection of theirs stays theirs. */
const PREPARED_NOTHING = `do $do$ begin
  if exists (select from pg_prepared_statements where statement like '%holdfast%') then raise 'prepared'; end if;
end $do$`

let database: Database
const open = () => {
  const hf = holdfast({ store: database.url, logger: false })
  const echo = hf.job({
    name: 'echo',
    input: z.object({ text: z.string() }),
    run: ({ input }) => input.text,
  })
  const keyed = hf.job({
    name: 'keyed',
    input: z.object({ key: z.string(), n: z.number() }),
    unique: ({ key }) => ({ key }),
    run: ({ input }) => input.n,
  })
  return { hf, echo, keyed }
}
let mine: ReturnType<typeof open>

beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
  await withClient(database.url, (client) => client.query('create table account (name text primary key)'))
  mine = open()
  // Opened before the first transaction, as in any program that runs for a while; one test below does without.
  await mine.hf.queues()
}, 30_000)
afterAll(async () => {
  await mine.hf.close()
  await database.drop()
}, 30_000)

const accounts = (): Promise<string[]> =>
  withClient(database.url, async (client) =>
    (await client.query<{ name: string }>('select name from account order by name')).rows.map(
      ({ name }) => name,
    ),
  )

class Undo extends Error {}
const undo = (): never => {
  throw new Undo('undo')
}

describe.each(libraries)('$name', ({ name: library, connect }) => {
  let connected: Connected
  beforeAll(async () => {
    connected = await connect(database.url)
  }, 30_000)
  afterAll(async () => void (await connected.close()), 30_000)

  test('a job is there once the transaction commits, and runs', async () => {
    const { hf, echo } = mine
    const account = `${library} committed`
    const handle = await connected.transaction(async ({ tx, run }) => {
      await run(`insert into account values ('${account}')`)
      const enqueued = await echo.enqueue(
        { text: TRICKY },
        { tx, priority: 'high', tags: [TRICKY.slice(0, 60)] },
      )
      expect(enqueued).toMatchObject({ duplicate: false, outcome: 'inserted' })
      expect(await echo.get(enqueued.id)).toBeNull()
      await run(PREPARED_NOTHING)
      return enqueued
    })
    expect(await accounts()).toContain(account)
    expect(await handle.state()).toBe('ready')
    await using _worker = await hf.work()
    expect(await handle.result()).toBe(TRICKY)
  })

  test('a job is not there if the transaction is rolled back', async () => {
    const { echo, keyed } = mine
    const ids: string[] = []
    const account = `${library} rolled back`
    const rolledBack = connected.transaction(async ({ tx, run }) => {
      await run(`insert into account values ('${account}')`)
      ids.push((await echo.enqueue({ text: 'never' }, { tx })).id)
      ids.push((await keyed.enqueue({ key: account, n: 1 }, { tx })).id)
      undo()
    })
    await expect(rolledBack).rejects.toThrow(Undo)
    expect(await accounts()).not.toContain(account)
    expect(await Promise.all([echo.get(ids[0]!), keyed.get(ids[1]!)])).toEqual([null, null])
    // Nor is its key.
    expect(await keyed.enqueue({ key: account, n: 2 })).toMatchObject({ outcome: 'inserted' })
  })

  test('a unique key is met inside the transaction and after it', async () => {
    const { keyed } = mine
    const key = `${library} key`
    const [first, second, third] = await connected.transaction(async ({ tx }) => [
      await keyed.enqueue({ key, n: 1 }, { tx, in: '1h' }),
      await keyed.enqueue({ key, n: 2 }, { tx }),
      await keyed.enqueue({ key, n: 3 }, { tx, in: '1h', unique: { key, onConflict: 'replace' } }),
    ])
    expect([first.outcome, second.outcome, third.outcome]).toEqual(['inserted', 'duplicate', 'replaced'])
    expect([second.id, third.id]).toEqual([first.id, first.id])
    expect(await keyed.enqueue({ key, n: 4 })).toMatchObject({ id: first.id, outcome: 'duplicate' })
    expect(await first.read()).toMatchObject({ state: 'scheduled', payload: JSON.stringify({ key, n: 3 }) })
  })

  test('many are in the one transaction, also those of several batches', async () => {
    const { hf, echo, keyed } = mine
    const inputs = Array.from({ length: 1_500 }, (_, n) => ({ text: `${n}` }))
    const given = async ({
      tx,
    }: Parameters<Parameters<Connected['transaction']>[0]>[0]): Promise<string[]> => {
      const { ids, ...counts } = await echo.enqueueMany(inputs, { tx, in: '1h' })
      expect(counts).toEqual({ inserted: 1_500, duplicates: 0 })
      const key = `${library} many`
      const items = [
        echo.with({ text: 'x' }, { in: '1h' }),
        keyed.with({ key, n: 1 }),
        keyed.with({ key, n: 2 }),
      ]
      const mixed = await hf.enqueueMany(items, { tx })
      expect(mixed).toMatchObject({
        inserted: 2,
        ids: [expect.any(String), mixed.ids[2], expect.any(String)],
      })
      return [...ids, mixed.ids[0]!]
    }
    const undone: string[] = []
    await connected
      .transaction(async (open) => undone.push(...(await given(open))) && undo())
      .catch(ignoreUndo)
    expect(undone).toHaveLength(1_501)
    expect(await found(undone)).toEqual([])
    const done = await connected.transaction(given)
    expect(await found(done)).toEqual(['0', '999', '1000', '1499', 'x'])
  })

  test('what is refused is refused before the write, and leaves the transaction as it was', async () => {
    const { echo } = mine
    const id = await connected.transaction(async ({ tx }) => {
      const bad = { text: 1 } as unknown as { text: string }
      expect(await thrownBy(echo.enqueue(bad, { tx }))).toMatchObject({ code: 'HF_INVALID_INPUT' })
      const some = await thrownBy(echo.enqueueMany([bad, { text: 'good' }], { tx, in: '1h' }))
      expect(some).toBeInstanceOf(PartialEnqueueError)
      expect(some).toMatchObject({ inserted: 1, failed: 1 })
      return (await echo.enqueue({ text: 'after' }, { tx, in: '1h' })).id
    })
    expect(await echo.get(id)).not.toBeNull()
  })

  test("the database's own errors come out as the library raises them, at once", async () => {
    const { echo } = mine
    const raised = (error: unknown): unknown => error
    const given = await connected
      .transaction(async ({ tx, run }) => {
        await Promise.resolve(run('select 1 / 0')).catch(raised)
        const own = await Promise.resolve(run('select 1')).catch(raised)
        const one = await echo.enqueue({ text: 'x' }, { tx }).catch(raised)
        const many = await echo.enqueueMany([{ text: 'x' }], { tx }).catch(raised)
        throw Object.assign(new Undo(), { own, one, many })
      })
      .catch((error: Undo & Record<'own' | 'one' | 'many', Error>) => error)
    // postgres.js ends a transaction with the first error in it, whoever has caught that.
    if (!(given instanceof Undo)) return expect(given).toMatchObject({ code: '22012' })
    for (const error of [given.one, given.many]) {
      expect(error).not.toBeInstanceOf(HoldfastError)
      expect(error.constructor).toBe(given.own.constructor)
    }
  })
})

const found = (ids: readonly string[]): Promise<unknown[]> =>
  Promise.all(
    [0, 999, 1_000, 1_499, 1_500].map(async (at) => {
      const handle = await mine.echo.get(ids[at]!)
      return handle === null ? [] : [JSON.parse((await handle.read()).payload).text]
    }),
  ).then((texts) => texts.flat())

function ignoreUndo(error: unknown): void {
  if (!(error instanceof Undo)) throw error
}
