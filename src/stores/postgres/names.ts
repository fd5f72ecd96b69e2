/**
 * Where the tables are: a separate schema and, if it must be shared, a prefix. All SQL is written for the schema
 * `holdfast` without a prefix, so that it can be run manually; here the configured names are substituted.
 */
import { readersFor, readOptions, refused, type Read, type Reader } from '../../job/options.ts'

export interface Names {
  readonly schema: string
  readonly prefix: string
}

export interface NamesOptions {
  /** @default 'holdfast' */
  readonly schema?: string
  /** Put before the name of each table and function. @default '' */
  readonly prefix?: string
}

/** PostgreSQL cuts names after 63 bytes; ours and the day of a partition have to fit behind a prefix. */
const SCHEMA = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/
const PREFIX = /^([A-Za-z_][A-Za-z0-9_]{0,29})?$/

export const NAMES_FIELDS = readersFor<NamesOptions>()({ schema: name(SCHEMA, 63), prefix: name(PREFIX, 30) })

export function readNames(options: NamesOptions): Names {
  return namesOf(readOptions(options, 'postgresSchema()', NAMES_FIELDS))
}

export function namesOf({ schema = 'holdfast', prefix = '' }: Read<typeof NAMES_FIELDS>): Names {
  return { schema, prefix }
}

function name(form: RegExp, length: number): Reader<string> {
  const hint = `Use at most ${length} letters, digits and underscores, and begin with a letter or an underscore.`
  return (value, path) => {
    if (typeof value === 'string' && form.test(value)) return value
    throw refused(path, value, "the beginning of a table's name", hint)
  }
}

/** The same SQL for other names. */
export function render(sql: string, { schema, prefix }: Names): string {
  return sql.replaceAll(/\bholdfast\.([a-z_]+)\b/g, (_, name: string) => `"${schema}"."${prefix}${name}"`)
}
