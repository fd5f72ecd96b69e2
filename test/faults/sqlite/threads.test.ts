/** Threads of one program that share a directory: one SQLite library, so nothing is lost, and none is refused. */
import { once } from 'node:events'
import { join } from 'node:path'
import type { Worker as Thread } from 'node:worker_threads'
import { DatabaseSync } from '@photostructure/sqlite'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import type { JobId } from '../../../src/job/ids.ts'
import { startFromSources, threadOptions } from '../../../src/stores/pulse/thread.ts'
import { sqliteStore } from '../../../src/stores/sqlite/index.ts'
import { audited, folderForStores, openStore } from './support/place.ts'

const folder = folderForStores()

async function startNeighbour(directory: string): Promise<{ thread: Thread; id: JobId }> {
  const { href } = new URL('support/neighbour.ts', import.meta.url)
  const thread = startFromSources(href, import.meta.url, threadOptions(directory))
  const [id] = (await once(thread, 'message')) as [JobId]
  return { thread, id }
}

async function end(thread: Thread): Promise<void> {
  const ended = once(thread, 'exit')
  thread.postMessage('end')
  await ended
}

test('a store in each of several threads opens the same directory', async () => {
  const directory = join(folder, 'threads')
  const store = await openStore(directory)
  const first = await startNeighbour(directory)
  await end(first.thread)
  // SQLite keeps the file of a connection that was closed open as long as others of the process have locks on it.
  const [second, third] = [await startNeighbour(directory), await startNeighbour(directory)]
  for (const { id } of [first, second, third]) expect(await store.admin.get(id)).toMatchObject({ id })
  await store.close()
  const last = await startNeighbour(directory)
  await Promise.all([second, third, last].map(({ thread }) => end(thread)))
  expect(await audited(directory)).toEqual([])
})

test.runIf(process.platform === 'linux').each([
  ['another library', (path: string) => new Database(path)],
  // Whose copy of the library it is, nobody says.
  ['a handle that no store opened', (path: string) => new DatabaseSync(path)],
])('a directory that is open through %s is refused', async (_name, open) => {
  const directory = join(folder, 'foreign')
  await (await openStore(directory)).close()
  const foreign = open(join(directory, 'holdfast.db'))
  const store = sqliteStore({ directory, onNotice: () => undefined })
  await expect(store.open()).rejects.toMatchObject({ code: 'HF_STORE_LOCKED' })
  foreign.close()
  await store.open()
  await store.close()
})
