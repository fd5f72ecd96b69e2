/** The migrations as files: numbered, append only, and readable as they stand. */
import { readdirSync, readFileSync } from 'node:fs'
import { render, type Names } from './names.ts'

export interface Migration {
  readonly version: number
  /** The file's name. */
  readonly name: string
  readonly sql: string
}

const FOLDER = new URL('migrations/', import.meta.url)

export function readMigrations(names: Names): Migration[] {
  return readdirSync(FOLDER)
    .filter((file) => /^\d{4}_\w+\.sql$/.test(file))
    .sort()
    .map((name) => ({
      version: Number(name.slice(0, 4)),
      name,
      sql: render(readFileSync(new URL(name, FOLDER), 'utf8'), names),
    }))
}

/** The table that says what was applied; made before the first migration. */
export function ledgerSql(names: Names): string {
  const { schema } = names
  return render(
    `create schema if not exists holdfast;
create table if not exists holdfast.migration (
  version integer primary key,
  name text not null,
  applied_at timestamptz not null default now()
);`,
    { ...names, schema },
  )
}

/** One migration and its entry in the ledger. */
export function appliedSql(migration: Migration, names: Names): string {
  const entry = `insert into holdfast.migration (version, name) values (${migration.version}, '${migration.name}');`
  return `-- ${migration.name}\n${migration.sql}\n${render(entry, names)}\n`
}

/** All of it as one script, for people who run their migrations themselves. */
export function migrationScript(names: Names, fromVersion = 0): string {
  const missing = readMigrations(names).filter(({ version }) => version > fromVersion)
  return ['begin;', ledgerSql(names), ...missing.map((one) => appliedSql(one, names)), 'commit;', ''].join(
    '\n',
  )
}
