/** A real PgBouncer in transaction mode before a server: a session's state does not survive its transactions. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { inject } from 'vitest'
import { withClient } from './client.ts'
import { findPgBouncer, skippedSince } from './pgbouncer-binary.ts'
import { freePort } from './port.ts'
import { ServerProcess } from './server-process.ts'

export interface PgBouncer {
  readonly port: number
  /** The database `pgbouncer` is its console. */
  url(database?: string): string
  /** Safe to call again. */
  dispose(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

const START_MS = 10_000
const ANSWER_MS = 5_000

/** Why suites are skipped, in one line: `context.skip(pgBouncerMissing())`. */
export function pgBouncerMissing(): string {
  return skippedSince(inject('pgBouncerMissing') || 'it was not looked for')
}

/** Before a server that runs, own or shared; null where there is no PgBouncer. */
export async function startPgBouncer(server: { readonly port: number }): Promise<PgBouncer | null> {
  const binary = findPgBouncer()
  if (binary === undefined) return null
  const process = await ServerProcess.prepare('pgbouncer')
  try {
    for (let tries = 1; ; tries++) {
      const port = await freePort()
      const url = (database = 'postgres'): string =>
        `postgres://postgres@127.0.0.1:${port}/${encodeURIComponent(database)}`
      process.spawn(binary, [await configure(process, port, server.port)])
      try {
        await process.ready(() => answers(url()), START_MS)
        const dispose = (): Promise<void> => process.dispose()
        return { port, url, dispose, [Symbol.asyncDispose]: dispose }
      } catch (error) {
        if (tries === 3 || !/in use/.test(process.log())) throw error
      }
    }
  } catch (error) {
    await process.dispose()
    throw error
  }
}

async function configure({ folder }: ServerProcess, port: number, serverPort: number): Promise<string> {
  const path = join(folder, 'pgbouncer.ini')
  const users = join(folder, 'users.txt')
  await writeFile(users, '"postgres" ""\n')
  await writeFile(
    path,
    `[databases]
* = host=127.0.0.1 port=${serverPort}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${users}
admin_users = postgres
pool_mode = transaction
default_pool_size = 20
max_client_conn = 200
ignore_startup_parameters = extra_float_digits,options,search_path,statement_timeout,lock_timeout,idle_in_transaction_session_timeout
`,
  )
  return path
}

async function answers(url: string): Promise<boolean> {
  return withClient(url, (client) => client.query('SELECT 1'), ANSWER_MS).then(
    () => true,
    () => false,
  )
}
