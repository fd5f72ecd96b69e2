import { Client, escapeIdentifier } from 'pg'

/** One connection for as long as `work` takes. */
export async function withClient<T>(
  url: string,
  work: (client: Client) => Promise<T>,
  deadlineMs = 10_000,
): Promise<T> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: deadlineMs })
  // A query under way rejects anyway; without a listener, the loss of an idle connection would end the process.
  client.on('error', () => undefined)
  try {
    await client.connect()
    return await work(client)
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** On the server of that URL. Returns the URL of the new database. */
export async function createDatabase(url: string, name: string): Promise<string> {
  await withClient(url, (client) => client.query(`CREATE DATABASE ${escapeIdentifier(name)}`))
  return databaseUrl(url, name)
}

/** Also where somebody is still connected to it. */
export async function dropDatabase(url: string, name: string): Promise<void> {
  await withClient(url, (client) =>
    client.query(`DROP DATABASE IF EXISTS ${escapeIdentifier(name)} WITH (FORCE)`),
  )
}

function databaseUrl(url: string, name: string): string {
  const other = new URL(url)
  other.pathname = `/${encodeURIComponent(name)}`
  return other.href
}
