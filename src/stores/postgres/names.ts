/**
 * Where the tables are: a separate schema and, if it must be shared, a prefix. All SQL is written for the schema
 * `holdfast` without a prefix, so that it can be run manually; here the configured names are substituted.
 */
import { HoldfastError } from '../../errors.ts'

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

export function readNames({ schema = 'holdfast', prefix = '' }: NamesOptions): Names {
  if (!SCHEMA.test(schema)) throw bad('schema', schema, 63)
  if (!PREFIX.test(prefix)) throw bad('prefix', prefix, 30)
  return { schema, prefix }
}

function bad(option: string, value: unknown, length: number): HoldfastError {
  return new HoldfastError(
    'HF_BAD_OPTION',
    `The ${option} ${JSON.stringify(value)} cannot be the beginning of a table's name.`,
    { hint: `Use letters, digits and underscores, not a digit first, ${length} characters at most.` },
  )
}

/** The same SQL for other names. */
export function render(sql: string, { schema, prefix }: Names): string {
  return sql.replaceAll(/\bholdfast\.([a-z_]+)\b/g, (_, name: string) => `"${schema}"."${prefix}${name}"`)
}
