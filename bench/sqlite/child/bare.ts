/** What a durable enqueue is held against: an insert of SQLite itself in a transaction of its own, on the main thread. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { load, type Library } from '../../contest/child/contender.ts'
import type { ChildConfig } from '../../contest/protocol.ts'
import { directoryOf } from '../server.ts'

/** What we use of `node:sqlite`. */
interface Module {
  readonly DatabaseSync: new (path: string) => {
    exec(sql: string): void
    prepare(sql: string): { run(...values: readonly string[]): unknown }
    close(): void
  }
}

export async function bareLibrary({ url }: ChildConfig): Promise<Library> {
  const { DatabaseSync } = await load<Module>('node:sqlite')
  const directory = directoryOf(url)
  mkdirSync(directory, { recursive: true })
  const database = new DatabaseSync(join(directory, 'bare.db'))
  database.exec('pragma journal_mode = wal; pragma synchronous = full')
  database.exec('create table job (seq integer primary key autoincrement, payload text not null) strict')
  const insert = database.prepare('insert into job (payload) values (?)')
  const refuse = (): Promise<never> => Promise.reject(new Error('It only enqueues one by one.'))
  return {
    open: () => Promise.resolve(),
    enqueue: async (payload) => void insert.run(JSON.stringify(payload)),
    enqueueMany: refuse,
    work: refuse,
    close: () => Promise.resolve(database.close()),
  }
}
