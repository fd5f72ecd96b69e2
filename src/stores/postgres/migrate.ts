/**
 * Brings the schema up to date. Any number of processes may do so at once: one does the work under a lock, the others
 * wait and find it done. A schema that is newer than the program is refused: it may mean something else by now.
 */
import { HoldfastError } from '../../errors.ts'
import type { Executor, Queryable, Statement } from './executor.ts'
import { appliedSql, ledgerSql, readMigrations, type Migration } from './migrations.ts'
import { render, type Names } from './names.ts'

export interface MigrateOptions {
  /** False: only check, for people who run the SQL themselves. */
  readonly apply: boolean
}

export async function migrate(executor: Executor, names: Names, { apply }: MigrateOptions): Promise<void> {
  const migrations = readMigrations(names)
  // Without the lock first: nearly always there is nothing to do, and a starting fleet need not queue up.
  const missing = missingFrom(migrations, await appliedVersions(executor, names), names)
  if (missing.length === 0) return
  if (!apply) throw notMigrated(names, missing)
  await executor.transaction(async (tx) => {
    await tx.query(LOCK, [`${names.schema}.${names.prefix}`])
    const still = missingFrom(migrations, await appliedVersions(tx, names), names)
    if (still.length === migrations.length) await tx.script(ledgerSql(names))
    for (const migration of still) await tx.script(appliedSql(migration, names))
  })
}

const LOCK: Statement = {
  name: 'hf_migrate_lock',
  text: "select pg_advisory_xact_lock(hashtextextended('holdfast migrations ' || $1::text, 0))",
}

/**
 * By a look into the catalogue itself: to_regclass would answer from what the session remembers, and who has waited for
 * the lock remembers that there was nothing.
 */
const LOOK: Statement = {
  name: 'hf_migrate_look',
  text: `select exists (
    select from pg_catalog.pg_class join pg_catalog.pg_namespace on pg_namespace.oid = relnamespace
    where nspname = $1::text and relname = $2::text
  ) as there`,
}

async function appliedVersions(db: Queryable, names: Names): Promise<number[]> {
  const [ledger] = await db.query<{ there: boolean }>(LOOK, [names.schema, `${names.prefix}migration`])
  if (ledger?.there !== true) return []
  const rows = await db.query<{ version: number }>(
    {
      name: 'hf_migrate_applied',
      text: render('select version from holdfast.migration order by version', names),
    },
    [],
  )
  return rows.map(({ version }) => version)
}

function missingFrom(
  migrations: readonly Migration[],
  applied: readonly number[],
  names: Names,
): Migration[] {
  const newest = migrations.at(-1)?.version ?? 0
  const newer = applied.filter((version) => version > newest)
  if (newer.length > 0) throw tooNew(names, Math.max(...newer), newest)
  return migrations.filter(({ version }) => !applied.includes(version))
}

function tooNew({ schema }: Names, found: number, known: number): HoldfastError {
  return new HoldfastError(
    'HF_SCHEMA_TOO_NEW',
    `The schema "${schema}" is at version ${found}, and this version of Holdfast knows versions up to ${known}.`,
  )
}

function notMigrated({ schema }: Names, missing: readonly Migration[]): HoldfastError {
  return new HoldfastError(
    'HF_SCHEMA_MISSING',
    `The schema "${schema}" lacks ${missing.map(({ name }) => name).join(', ')}, and \`migrate: false\` forbids to apply them.`,
  )
}
