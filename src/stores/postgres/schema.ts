/**
 * The schema as SQL. Tables are numbered migrations, applied once each. Functions, types and views are one current file
 * each, and are replaced as a set whenever the version changes: in place if the header is the same, so that running
 * calls continue.
 *
 * Released versions. Version N of the program runs on the schema of N and of N−1, and the schema of N serves programs
 * of N−1 and N, so a fleet can be upgraded process by process in any order. Hence a migration only adds what N−1 can
 * ignore, and the functions of N include every function that N−1 calls. A running call finishes with the functions of
 * N, so a function with the same header, also one that only functions call, must serve callers of N−1. Raise
 * `SCHEMA_VERSION` with every change of a file in `schema/`, and `OLDEST_PROGRAM` when support for an old program ends.
 * `test/faults/postgres/upgrade.test.ts` rehearses all of this.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { render, type Names } from './names.ts'

/** Version of the files in `schema/`: at least the number of the newest migration. */
export const SCHEMA_VERSION = 1
/** Oldest schema that this program runs on if it may not migrate it. */
export const OLDEST_SCHEMA = 1
/** Oldest program, by its `SCHEMA_VERSION`, that runs on this schema. */
const OLDEST_PROGRAM = 1

const FOLDER = new URL('schema/', import.meta.url)
/** Order matters here: a view is checked when it is created. */
const VIEWS = ['job', 'packed_job', 'job_queue', 'queue_status', 'get_job', 'list_jobs'] as const
/** Partitions exist for today and this many days ahead, so that a paused upkeep does no harm. */
export const DAYS_AHEAD = 3

interface Migration {
  readonly version: number
  readonly name: string
  readonly sql: string
}

function readMigrations(): Migration[] {
  return sqlFiles('tables').map((name) => ({
    version: Number(name.slice(0, 4)),
    name,
    sql: read(`tables/${name}`),
  }))
}

/** Changes the text of a file before it is installed, for tests that plant bugs. */
export type EditSql = (file: string, text: string) => string

/** The text of every function, type and view, in the order in which they can be created. */
function readRoutines(edit: EditSql = (_, text) => text): string {
  const functions = sqlFiles('functions').filter((name) => name !== 'types.sql')
  return ['types.sql', ...functions]
    .map((name) => edit(name, read(`functions/${name}`)))
    .concat(VIEWS.map((name) => edit(`${name}.sql`, read(`views/${name}.sql`))))
    .join('\n')
}

/**
 * The whole schema as one script. It brings any older schema up to date, can be run again without harm, and refuses a
 * newer one. The program runs the same text.
 */
export function schemaScript(names: Names, edit?: EditSql): string {
  const routines = readRoutines(edit)
  const parts = [
    'begin;',
    `select pg_advisory_xact_lock(${lockKey(names)});`,
    // While this lock waits for an old transaction, all other calls wait behind it. So give up and let them pass.
    "set local lock_timeout = '2s';",
    'set local check_function_bodies = off;',
    createSchema(names),
    INFO_TABLE,
    guard(),
    ...readMigrations().map(applyOnce),
    `select set_config('job_schema.headers', '${JSON.stringify(headers(routines, names))}', true);`,
    read('drop_routines.sql'),
    replacing(routines),
    `select holdfast.make_partitions(${DAYS_AHEAD}, 100);`,
    `update holdfast.schema_info as info set version = ${SCHEMA_VERSION}, oldest_program = ${OLDEST_PROGRAM},
  digest = '${digest(routines)}', headers = current_setting('job_schema.headers')::jsonb, installed_at = now();`,
    'commit;\n',
  ]
  return render(parts.join('\n\n'), names)
}

const HEADER =
  /^create (?:function (holdfast\.\w+)\(([^)]*)\)[^]*?\sas \$\$|(type|view) (holdfast\.\w+)[^]*?;$)/gm

/**
 * Each function, type and view by its kind and exact name, a function with the types of its parameters, so that nothing
 * else is mistaken for ours. With a digest of the part that cannot be replaced in place: all but the body of a
 * function, and the whole text of the others.
 */
function headers(routines: string, names: Names): Record<string, string> {
  const found = [...routines.matchAll(HEADER)]
  return Object.fromEntries(
    found.map(([text, fn, parameters, kind, other]) => {
      const object = fn === undefined ? `${kind} ${other}` : `function ${fn}(${typesOf(parameters ?? '')})`
      return [render(object, names), digest(text)]
    }),
  )
}

/** The types in a list of parameters as we write it: `p_id uuid, p_name text default 'x', out number integer`. */
function typesOf(parameters: string): string {
  return parameters
    .split(',')
    .map((parameter) => parameter.trim())
    .filter((parameter) => parameter !== '' && !parameter.startsWith('out '))
    .map((parameter) => parameter.replace(/^\w+ /, '').replace(/ default .*$/, ''))
    .join(', ')
}

/** Functions are replaced. A type or view that exists is ours and stays as it is: see drop_routines.sql. */
function replacing(routines: string): string {
  return routines
    .replaceAll(/^create function /gm, 'create or replace function ')
    .replaceAll(/^create (type|view) (holdfast\.\w+)[^]*?;$/gm, (text, kind: string, name: string) => {
      const look = kind === 'type' ? 'to_regtype' : 'to_regclass'
      return `do $missing$\nbegin\n  if ${look}('${name}') is null then\n${text}\n  end if;\nend $missing$;`
    })
}

/**
 * Distinguishes two texts of the functions with the same version, which occur only while a version is being developed.
 */
export function routinesDigest(): string {
  return digest(readRoutines())
}

/** Key of the lock under which one process installs the schema while the others wait. */
function lockKey({ schema, prefix }: Names): string {
  return `hashtextextended('job schema ${schema}.${prefix}', 0)`
}

const INFO_TABLE = `create table if not exists holdfast.schema_info (
  one boolean primary key default true check (one),
  version integer not null,
  oldest_program integer not null,
  digest text not null,
  headers jsonb not null,
  installed_at timestamptz not null default now()
);
insert into holdfast.schema_info as info (version, oldest_program, digest, headers) values (0, 0, '', '{}')
on conflict (one) do nothing;`

/** Check first: CREATE SCHEMA IF NOT EXISTS needs the right to create schemas even if this one exists. */
function createSchema({ schema }: Names): string {
  return `do $schema$
begin
  if not exists (select from pg_namespace where nspname = '${schema}') then
    create schema "${schema}";
  end if;
end $schema$;`
}

function guard(): string {
  return `do $guard$
begin
  if (select info.version from holdfast.schema_info as info) > ${SCHEMA_VERSION} then
    raise exception 'this schema is newer than version ${SCHEMA_VERSION}, which this script installs';
  end if;
end $guard$;`
}

function applyOnce({ version, name, sql }: Migration): string {
  return `-- ${name}
do $guard$
begin
  if (select info.version from holdfast.schema_info as info) < ${version} then
    execute $migration$
${sql}
    $migration$;
  end if;
end $guard$;`
}

function sqlFiles(folder: string): string[] {
  return readdirSync(new URL(`${folder}/`, FOLDER))
    .filter((file) => file.endsWith('.sql'))
    .sort()
}

function read(path: string): string {
  return readFileSync(new URL(path, FOLDER), 'utf8')
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}
