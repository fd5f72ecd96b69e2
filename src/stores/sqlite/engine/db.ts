/** The statements of `sql/`, by name, on one connection. Each is prepared when it is first used. */
import { readFileSync } from 'node:fs'
import type { Database, SqlValue, Statement } from '../driver.ts'
import { SQL_FOLDER } from '../sql-folder.ts'
import { damaged } from './damage.ts'

const FILES = ['jobs', 'leases', 'upkeep', 'admin', 'version'] as const
const NAME = /^-- name: (\w+)$/m

/** As the files name their tables; a store in the caller's database has its own prefix. */
export const PREFIX = 'holdfast_'

/** The texts that a store runs. */
export interface SqlTexts {
  /** Makes the tables. */
  readonly tables: string
  /** Name → text of every statement. */
  readonly statements: ReadonlyMap<string, string>
}

/** `edit`: for tests, which plant bugs there. */
export function readSql(prefix = PREFIX, edit = (_file: string, text: string): string => text): SqlTexts {
  const read = (file: string): string => {
    const text = readFileSync(new URL(`${file}.sql`, SQL_FOLDER), 'utf8')
    return edit(file, text).replaceAll(PREFIX, prefix)
  }
  const statements = new Map<string, string>()
  for (const file of FILES) {
    const [, ...parts] = read(file).split(NAME)
    for (let at = 0; at < parts.length; at += 2) statements.set(parts[at] ?? '', (parts[at + 1] ?? '').trim())
  }
  return { tables: read('tables'), statements }
}

export class Db {
  readonly #database: Database
  readonly #texts: ReadonlyMap<string, string>
  readonly #prepared = new Map<string, Statement>()

  constructor(database: Database, texts: ReadonlyMap<string, string>) {
    this.#database = database
    this.#texts = texts
  }

  all<Row>(name: string, ...values: SqlValue[]): Row[] {
    return read(() => this.#statement(name).all(...values)) as Row[]
  }

  /**
   * Rows as arrays, in the order of the columns: without an object for each, many of many columns are read in half the
   * time. A statement is read with this or with `all`, never with both.
   */
  rows<Row extends readonly SqlValue[]>(name: string, ...values: SqlValue[]): Row[] {
    const statement = this.#statement(name)
    if (statement.setReturnArrays === undefined) return this.all<object>(name, ...values).map(valuesOf<Row>)
    statement.setReturnArrays(true)
    return read(() => statement.all(...values)) as readonly unknown[] as Row[]
  }

  get<Row>(name: string, ...values: SqlValue[]): Row | undefined {
    return read(() => this.#statement(name).get(...values)) as Row | undefined
  }

  /** Returns how many rows it changed. */
  run(name: string, ...values: SqlValue[]): number {
    return Number(this.#statement(name).run(...values).changes)
  }

  /** Returns the rowid of the new row. */
  insert(name: string, ...values: SqlValue[]): number {
    return Number(this.#statement(name).run(...values).lastInsertRowid)
  }

  /** Asserts that it changes one row: a step that misses its job must not be committed. */
  runOne(name: string, ...values: SqlValue[]): void {
    const changed = this.run(name, ...values)
    if (changed !== 1) throw damaged(`the statement ${name} changed ${changed} rows instead of one`)
  }

  /** Gives free pages back to the file system, if the file keeps track of its pages (`auto_vacuum = incremental`). */
  freePages(most: number): void {
    // Not a prepared statement, of which some libraries run only the first step.
    this.#database.exec(`pragma incremental_vacuum(${most})`)
  }

  #statement(name: string): Statement {
    let statement = this.#prepared.get(name)
    if (statement === undefined) {
      const text = this.#texts.get(name)
      if (text === undefined) throw new Error(`There is no statement ${name}.`)
      statement = this.#database.prepare(text)
      this.#prepared.set(name, statement)
    }
    return statement
  }
}

function valuesOf<Row>(row: object): Row {
  return Object.values(row) as unknown as Row
}

/** No integer of ours is beyond 2^53; the library throws at one that is. */
function read<T>(statement: () => T): T {
  try {
    return statement()
  } catch (error) {
    if ((error as { readonly code?: unknown }).code !== 'ERR_OUT_OF_RANGE') throw error
    throw damaged('a stored number is greater than any that was written')
  }
}
