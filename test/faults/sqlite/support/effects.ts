/** Where the jobs of the kill soak note their effects: a database of its own beside the store. */
import { join } from 'node:path'
import { loadDriver, type Database } from '../../../../src/stores/sqlite/driver.ts'

export const EFFECTS = 'effects.db'

export interface Effect {
  readonly fence: string
  readonly times: number
}

/** `folder`: the one that holds the directory of the store. */
export async function openEffects(folder: string): Promise<Database> {
  const { DatabaseSync } = await loadDriver()
  const database = new DatabaseSync(join(folder, EFFECTS))
  database.exec(`
    pragma busy_timeout = 10000;
    pragma journal_mode = wal;
    pragma synchronous = off;
    create table if not exists effect (job text primary key, fence integer not null, times integer not null) strict;
  `)
  return database
}

/** Never by a lease that is older than the last one that did. */
export const NOTE_EFFECT = `
  insert into effect as before (job, fence, times) values (?, ?, 1)
  on conflict (job) do update set fence = excluded.fence, times = before.times + 1
  where before.fence < excluded.fence`

export function readEffects(database: Database): ReadonlyMap<string, Effect> {
  const rows = database.prepare('select job, fence, times from effect').all() as {
    job: string
    fence: number
    times: number
  }[]
  return new Map(rows.map(({ job, fence, times }) => [job, { fence: String(fence), times }]))
}
