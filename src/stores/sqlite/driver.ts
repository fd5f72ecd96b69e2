/**
 * What this store needs of an SQLite library, structurally: `node:sqlite` has it, and `@photostructure/sqlite`, which
 * brings the same API to Node 20.
 */
import { createRequire } from 'node:module'
import { HoldfastError } from '../../errors.ts'

export type SqlValue = null | number | string

export interface Statement {
  all(...values: SqlValue[]): unknown[]
  /** Rows are arrays from now on. Node has it from 22.16 on. */
  setReturnArrays?(on: boolean): void
  get(...values: SqlValue[]): unknown
  run(...values: SqlValue[]): { readonly changes: number | bigint; readonly lastInsertRowid: number | bigint }
}

export interface Database {
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
}

export interface Driver {
  /** Names this copy of the library. */
  readonly library: string
  readonly DatabaseSync: new (path: string) => Database
}

const DRIVERS = ['node:sqlite', '@photostructure/sqlite'] as const

/** The first library that is here. */
export async function loadDriver(): Promise<Driver> {
  for (const name of DRIVERS) {
    try {
      const { DatabaseSync } = (await import(name)) as Pick<Driver, 'DatabaseSync'>
      return { DatabaseSync, library: name.startsWith('node:') ? name : pathOf(name) }
    } catch (error) {
      if (!isMissing(error)) throw error
    }
  }
  throw new HoldfastError(
    'HF_STORE_MISSING',
    `The embedded store needs an SQLite library, which Node ${process.versions.node} does not have.`,
    { hint: 'Install it: npm install @photostructure/sqlite@1. Or use Node 22.13 or newer.' },
  )
}

/** Two copies of a package are two libraries. */
function pathOf(name: string): string {
  try {
    return createRequire(import.meta.url).resolve(name)
  } catch {
    return name
  }
}

function isMissing(error: unknown): boolean {
  const code = (error as { readonly code?: unknown } | null)?.code
  return code === 'ERR_UNKNOWN_BUILTIN_MODULE' || code === 'ERR_MODULE_NOT_FOUND'
}
