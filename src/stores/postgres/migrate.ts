/**
 * Brings the schema up to date. Any number of processes may do so at once: one does the work under a lock, the others
 * wait and find it done. A schema that this program cannot run on, older or newer, is refused.
 */
import { HoldfastError } from '../../errors.ts'
import { retryAfter, type RetryParts } from './conflicts.ts'
import type { Executor, Statement } from './executor.ts'
import { render, type Names } from './names.ts'
import { isConflict, isLockTimeout, sqlState } from './server-errors.ts'
import { OLDEST_SCHEMA, routinesDigest, SCHEMA_VERSION, schemaScript } from './schema.ts'

export interface MigrateOptions extends RetryParts {
  /** False: only check, for people who run the SQL themselves. */
  readonly apply: boolean
}

interface Installed {
  readonly version: number
  readonly oldest_program: number
  readonly digest: string
}

export async function migrate(executor: Executor, names: Names, options: MigrateOptions): Promise<void> {
  try {
    await bringUpToDate(executor, names, options)
  } catch (error) {
    throw taken(names, error) ?? error
  }
}

async function bringUpToDate(executor: Executor, names: Names, options: MigrateOptions): Promise<void> {
  const { apply } = options
  // Checked without the lock first: there is nearly always nothing to do, and a starting fleet need not queue up.
  const installed = await installedSchema(executor, names)
  if (installed !== null && installed.version > SCHEMA_VERSION) {
    if (installed.oldest_program > SCHEMA_VERSION) throw tooNew(names, installed)
    return
  }
  if (installed?.version === SCHEMA_VERSION && (!apply || installed.digest === routinesDigest())) return
  // It alters tables while other sessions use them, and in a deadlock it is the one that is rolled back.
  const install = (): Promise<void> => executor.script(schemaScript(names))
  if (apply) await install().catch((error: unknown) => retryAfter(error, options, isInTheWay, install))
  else if (installed === null || installed.version < OLDEST_SCHEMA) throw notMigrated(names, installed)
}

function isInTheWay(error: unknown): boolean {
  return isConflict(error) || isLockTimeout(error)
}

/** A table, view, function or type has a name of ours: 42P07 and 42710. Or a `schema_info` lacks our columns: 42703. */
const TAKEN = /^(42P07|42710|42703)$/

/** Of an error that the executor has explained as that of any statement. */
function taken({ schema, prefix }: Names, explained: unknown): HoldfastError | undefined {
  const error = explained instanceof HoldfastError ? explained.cause : undefined
  if (!(error instanceof Error) || !TAKEN.test(sqlState(error) ?? '')) return undefined
  const where =
    prefix === '' ? `the schema "${schema}"` : `the schema "${schema}" with the prefix "${prefix}"`
  return new HoldfastError('HF_SCHEMA_CLASH', `Holdfast can't use ${where}: ${error.message}.`, {
    cause: error,
  })
}

/** Reads the catalogue, because to_regclass would answer from the session's cache. */
const LOOK: Statement = {
  name: 'hf_schema_look',
  text: `select exists (
    select from pg_catalog.pg_class join pg_catalog.pg_namespace on pg_namespace.oid = relnamespace
    where nspname = $1::text and relname = $2::text
  ) as there`,
}

async function installedSchema(executor: Executor, names: Names): Promise<Installed | null> {
  const [info] = await executor.query<{ there: boolean }>(LOOK, [names.schema, `${names.prefix}schema_info`])
  if (info?.there !== true) return null
  const text = render('select version, oldest_program, digest from holdfast.schema_info', names)
  const [row] = await executor.query<Installed>({ name: 'hf_schema_info', text }, [])
  return row ?? null
}

function tooNew({ schema }: Names, { version, oldest_program: oldest }: Installed): HoldfastError {
  return new HoldfastError(
    'HF_SCHEMA_TOO_NEW',
    `The schema "${schema}" is at version ${version} and needs a program of version ${oldest} or newer; this one is of version ${SCHEMA_VERSION}.`,
  )
}

function notMigrated({ schema }: Names, installed: Installed | null): HoldfastError {
  const found = installed === null ? 'does not exist' : `is at version ${installed.version}`
  return new HoldfastError(
    'HF_SCHEMA_MISSING',
    `The schema "${schema}" ${found}; this program needs version ${OLDEST_SCHEMA} or newer, and \`migrate: false\` forbids installing it.`,
  )
}
