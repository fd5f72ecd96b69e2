import { afterAll, afterEach, beforeAll, describe, expect, test, type TestContext } from 'vitest'
import {
  freshDatabase,
  portOf,
  sharedPostgres,
  type Database,
} from '../../../../test/support/servers/database.ts'
import {
  pgBouncerMissing,
  startPgBouncer,
  type PgBouncer,
} from '../../../../test/support/servers/pgbouncer.ts'
import type { Executor, Statement } from '../executor.ts'
import { pgExecutor } from './pg-executor.ts'

let database: Database
let bouncer: PgBouncer | null
let notices: string[] = []
const opened: Executor[] = []

beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
  bouncer = await startPgBouncer({ port: portOf(database.url) })
}, 30_000)

afterEach(async () => {
  notices = []
  await Promise.all(opened.splice(0).map((executor) => executor.close()))
})

afterAll(async () => {
  await bouncer?.dispose()
  await database.drop()
})

function connect({ skip }: TestContext): Executor {
  if (bouncer === null) return skip(pgBouncerMissing())
  const executor = pgExecutor({
    connectionString: bouncer.url(new URL(database.url).pathname.slice(1)),
    onNotice: (line) => notices.push(line),
  })
  opened.push(executor)
  return executor
}

const sql = (name: string, text: string): Statement => ({ name, text })

describe('behind PgBouncer in transaction mode, an executor', () => {
  test('does without prepared statements as soon as they get lost, and fails nothing', async (context) => {
    const executor = connect(context)
    await executor.open()
    const statements = Array.from({ length: 5 }, (_, index) =>
      sql(`s${index}`, `select ${index}::int + $1::int as n, pg_sleep(0.002)`),
    )
    const round = (times: number): Promise<unknown> =>
      Promise.all(
        Array.from({ length: times }, async (_, index) => {
          const at = index % statements.length
          const statement = statements[at]!
          const rows =
            index % 7 === 0
              ? await executor.transaction((tx) => tx.query<{ n: number }>(statement, [1]))
              : await executor.query<{ n: number }>(statement, [1])
          expect(rows[0]!.n).toBe(at + 1)
        }),
      )
    await round(150)
    expect(notices).toEqual([expect.stringMatching(/^Prepared statements do not survive/)])
  })

  test('runs transactions and scripts', async (context) => {
    const executor = connect(context)
    await executor.script('create table if not exists t (n int)')
    await executor.transaction(async (tx) => {
      await tx.query(sql('insert', 'insert into t values ($1::int)'), [1])
      await tx.query(sql('insert', 'insert into t values ($1::int)'), [2])
    })
    expect(await executor.query(sql('sum', 'select sum(n) as n from t'), [])).toEqual([{ n: 3 }])
  })

  test('finds out that notices do not arrive, and says so once', async (context) => {
    const executor = connect(context)
    const ignore = (): void => undefined
    const [one, two] = await Promise.all([
      executor.listen('a', ignore, ignore),
      executor.listen('b', ignore, ignore),
    ])
    expect([one.listening, two.listening]).toEqual([false, false])
    expect(notices.filter((line) => line.includes('LISTEN'))).toHaveLength(1)
    await one.stop()
    await two.stop()
  })
})
