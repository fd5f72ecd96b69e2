/** SQL stores for tests, each in its own schema and with a clock that can be advanced. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { StoreUnderTest } from '../../src/stores/conformance/index.ts'
import type { Executor } from '../../src/stores/postgres/executor.ts'
import { Lanes, type Look } from '../../src/stores/postgres/lanes.ts'
import { readNames, render, type Names } from '../../src/stores/postgres/names.ts'
import { schemaScript, type EditSql } from '../../src/stores/postgres/schema.ts'
import { sqlStore } from '../../src/stores/postgres/sql-store.ts'
import { HoldfastError } from '../../src/errors.ts'
import { systemClock } from '../../src/std/clock.ts'
import { systemRandom } from '../../src/std/random.ts'

let made = 0
/** Creating a schema is slow, so consecutive stores on one executor share it. */
const schemas = new WeakMap<Executor, string>()

function schemaFor(executor: Executor): string {
  const schema = schemas.get(executor) ?? `hf_test_${process.pid}_${made++}`
  schemas.set(executor, schema)
  return schema
}

const TABLES = [
  'ready',
  'scheduled',
  'worker',
  'lease',
  'batch',
  'revoked',
  'intake',
  'payload',
  'unique_key',
  // In the lock order of a compaction.
  'count_change',
  'queue',
  'dead',
  'history',
  'ended',
  'schedule',
  'leader',
  'note',
]

/** On small tables this takes a tenth of the time of a truncate, which creates new files for every index. */
function emptied(names: Names): string {
  return render(TABLES.map((table) => `delete from holdfast.${table};`).join('\n'), names)
}

export interface SqlStoreSetup {
  readonly executor: Executor
  readonly prefix?: string
  /** Whether the store's clock only moves by `advance`, and every claim scans from the start. */
  readonly frozen?: boolean
  /** Whether to recount at the close and fail on errors. @default true, unless `edit` plants a bug */
  readonly audited?: boolean
  /** Whether to close the executor with the store. If not, the schema is emptied for the next store. */
  readonly own?: boolean
  /** Changes the SQL of the schema, which is created for this store alone. */
  readonly edit?: EditSql
}

export interface SqlStoreUnderTest extends StoreUnderTest {
  readonly names: Names
}

export async function openSqlStore({
  executor,
  prefix = '',
  own = true,
  frozen = false,
  audited = true,
  edit,
}: SqlStoreSetup): Promise<SqlStoreUnderTest> {
  const names = readNames({ schema: schemaFor(executor), prefix })
  if (edit !== undefined) await executor.script(schemaScript(names, edit))
  const shared: Executor = own ? executor : lent(executor)
  const store = sqlStore({
    executor: shared,
    names,
    migrate: edit === undefined,
    clock: systemClock,
    random: systemRandom,
    ...(frozen ? { lanes: new WholeLanes(systemClock) } : {}),
  })
  await store.open()
  let offsetMs = 0
  const setClock = (): Promise<void> =>
    executor.script(clockAt(names, frozen ? FROZEN_MS : 'the time', offsetMs))
  await setClock()
  return {
    store,
    names,
    advance: async (ms) => {
      offsetMs += ms
      await setClock()
    },
    close: async () => {
      await store.close()
      if (own) return
      const wrong = audited && edit === undefined ? await audit(executor, names) : []
      await executor.script(emptied(names))
      assert.deepEqual(wrong, [], 'a recount of the store')
    },
  }
}

const AUDIT = readFileSync(new URL('servers/postgres-audit.sql', import.meta.url), 'utf8')

/** The errors that a recount finds in a store, in words. */
async function audit(executor: Executor, names: Names): Promise<string[]> {
  const statement = { name: `audit ${names.schema}.${names.prefix}`, text: render(AUDIT, names) }
  return (await executor.query<{ wrong: string }>(statement, [])).map(({ wrong }) => wrong)
}

/** Every claim looks at all that is ready, and so takes the very first, as a model does. */
class WholeLanes extends Lanes {
  override look(queue: string, suspects: boolean): Look {
    return super.look(queue, suspects, true)
  }
}

const FROZEN_MS = Date.UTC(2030, 0, 1)

/** The store's one clock, set otherwise: everything else is as in production. */
function clockAt(names: Names, base: number | 'the time', offsetMs: number): string {
  const from =
    base === 'the time' ? '(extract(epoch from clock_timestamp()) * 1000)::bigint' : `${base}::bigint`
  return render(
    `create or replace function holdfast.now_ms() returns bigint language sql volatile parallel safe as $$
      select ${from} + ${Math.round(offsetMs)}
    $$`,
    names,
  )
}

/** An executor that outlives the store, but not for the store. */
function lent(executor: Executor): Executor {
  let closed = false
  const open = <T>(work: () => Promise<T>): Promise<T> => (closed ? Promise.reject(closedError()) : work())
  return {
    open: () => open(() => executor.open()),
    query: (statement, values) => open(() => executor.query(statement, values)),
    script: (sql) => open(() => executor.script(sql)),
    transaction: (work) => open(() => executor.transaction(work)),
    listen: (...args) => open(() => executor.listen(...args)),
    close: () => {
      closed = true
      return Promise.resolve()
    },
  }
}

function closedError(): Error {
  return new HoldfastError('HF_CLOSED', 'The store is closed.')
}
