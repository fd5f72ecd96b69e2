/** PGlite: as a library whose transaction is passed (on a database with our tables), and as the embedded store. */
import { PGlite } from '@electric-sql/pglite'
import { drizzle } from 'drizzle-orm/pglite'
import { holdfast, type Tx } from 'holdfast'
import { postgresSchema } from 'holdfast/postgres'
import type { NewJob, Store } from 'holdfast/store'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/std/clock.ts'
import { makeIds } from '../../src/job/ids.ts'
import { systemRandom } from '../../src/std/random.ts'
import { readNames } from '../../src/stores/postgres/names.ts'
import type { Executor } from '../../src/stores/postgres/executor.ts'
import { pgliteExecutor } from '../../src/stores/postgres/pglite/pglite-executor.ts'
import { sqlStore } from '../../src/stores/postgres/sql-store.ts'
import { thrownBy } from '../support/virtual.ts'

/** Starting PGlite compiles 10 MB of WebAssembly and creates a database. */
const START_MS = 120_000
const ids = makeIds(systemClock, systemRandom)

function storeOn(kind: 'postgres' | 'embedded', executor: Executor): Store {
  const names = readNames({})
  return sqlStore({ kind, executor, names, migrate: true, clock: systemClock, random: systemRandom })
}

describe('a transaction of PGlite', () => {
  // Never opened: only the handle is used.
  const transactions = storeOn('postgres', pgliteExecutor({ directory: null })).transactions!
  let pglite: PGlite
  beforeAll(async () => {
    pglite = await PGlite.create()
    await pglite.exec(postgresSchema())
  }, START_MS)
  afterAll(() => pglite.close())

  const newJob = (key: string | null = null): NewJob => ({
    id: ids.job(),
    name: 'note',
    queue: 'default',
    payload: '{}',
    priority: 5,
    headStartMs: 0,
    maxAttempts: 1,
    maxCrashes: 1,
    group: null,
    limits: [],
    envelope: { correlationId: null, tags: [], metadata: {}, retry: null, timeoutMs: null },
    due: { inMs: 0 },
    unique: key === null ? null : { key, hold: { while: 'unfinished' }, onConflict: 'ignore' },
  })
  const count = async (): Promise<unknown> =>
    (await pglite.query<{ n: number }>('select count(*)::int as n from holdfast.ready')).rows[0]?.n

  const ways: [string, (work: (tx: Tx) => Promise<unknown>) => Promise<unknown>][] = [
    ['by itself', (work) => pglite.transaction(work)],
    ['through Drizzle', (work) => drizzle({ client: pglite }).transaction(work)],
  ]

  test.each(ways)('%s: the jobs are there if it commits', async (way, transaction) => {
    const before = await count()
    await expect(
      transaction(async (tx) => {
        await transactions.enqueue(tx, { id: ids.flush(), jobs: [newJob()] })
        throw new Error('undo')
      }),
    ).rejects.toThrow('undo')
    expect(await count()).toBe(before)
    await transaction(async (tx) => {
      const [first, second] = [newJob(way), newJob(way)]
      const flush = { id: ids.flush(), jobs: [first, second] }
      expect(await transactions.enqueue(tx, flush)).toEqual([
        { id: first.id, outcome: 'inserted' },
        { id: first.id, outcome: 'duplicate' },
      ])
    })
    expect(await count()).toBe((before as number) + 1)
  })

  test('PGlite itself is refused', async () => {
    const flush = { id: ids.flush(), jobs: [newJob()] }
    expect(await thrownBy(transactions.enqueue(pglite, flush))).toMatchObject({ code: 'HF_BAD_OPTION' })
    expect(await thrownBy(transactions.enqueue(drizzle({ client: pglite }), flush))).toMatchObject({
      code: 'HF_BAD_OPTION',
    })
  })
})

describe('on the embedded store', () => {
  let executor: Executor
  beforeAll(async () => {
    executor = pgliteExecutor({ directory: null })
    await executor.open()
  }, START_MS)
  afterAll(() => executor.close())

  const open = () => {
    const store = storeOn('embedded', executor)
    const hf = holdfast({ store: { ...store, close: () => Promise.resolve() }, logger: false })
    return { hf, job: hf.job({ name: 'note', run: () => 'done' }) }
  }
  test('a job is there if the transaction on its own database commits', async () => {
    const { hf, job } = open()
    await hf.queues()
    const handle = await executor.transaction((tx) => job.enqueue(undefined, { tx: tx.handle }))
    await using _worker = await hf.work()
    expect(await handle.result()).toBe('done')
    let id = ''
    const undone = executor.transaction(async (tx) => {
      ;({ id } = await job.enqueue(undefined, { tx: tx.handle }))
      throw new Error('undo')
    })
    await expect(undone).rejects.toThrow('undo')
    expect(await job.get(id)).toBeNull()
  })

  test.each<[string, unknown]>([
    ['a client of pg', { query: () => undefined, getTransactionStatus: () => 'T' }],
    ['Prisma', { $queryRawUnsafe: () => undefined }],
    ['Kysely', { executeQuery: () => undefined, getExecutor: () => undefined, isTransaction: true }],
    ['TypeORM', { query: () => undefined, getRepository: () => undefined }],
    ['nothing', null],
  ])('a transaction of another database is refused: %s', async (_name, tx) => {
    const { job } = open()
    expect(await thrownBy(job.enqueue(undefined, { tx: tx as never }))).toMatchObject({
      code: 'HF_BAD_OPTION',
      message: '{ tx } is not a transaction on the embedded database.',
    })
  })
})
