/** Databases on the servers that all test files of a run share, see `global-setup.ts`. */
import { randomBytes } from 'node:crypto'
import { inject } from 'vitest'
import type { PostgresVersion } from './binaries.ts'
import { createDatabase, dropDatabase } from './client.ts'

export interface Database {
  readonly url: string
  /** Also ends the sessions that still use it. */
  drop(): Promise<void>
}

/** Those that could be had: the newest always, the oldest where npm has it for this platform. */
export function postgresVersions(): readonly PostgresVersion[] {
  return inject('postgres13') === '' ? [18] : [18, 13]
}

/** The URL of the shared server. */
export function sharedPostgres(version: PostgresVersion): string {
  const url = inject(version === 18 ? 'postgres18' : 'postgres13') as string | undefined
  if (url !== undefined) return url
  throw new Error(
    'No PostgreSQL was started: it is for runs with a test file that has "postgres" in its text.',
  )
}

/** On the server of that URL, by a name that nobody else has. */
export async function freshDatabase(serverUrl: string): Promise<Database> {
  const name = `test_${randomBytes(8).toString('hex')}`
  const url = await createDatabase(serverUrl, name)
  return { url, drop: () => dropDatabase(serverUrl, name) }
}

export function portOf(url: string): number {
  return Number(new URL(url).port)
}
