/** The log (`-wal`) stays small while several processes write without a pause, and shrinks when a reader lets go of it. */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { MAX_LOG_BYTES } from '../../../src/stores/sqlite/log-keeper.ts'
import { until } from '../../support/until.ts'
import { Member } from './support/member.ts'
import { audited, folderForStores, openPast } from './support/place.ts'

const folder = folderForStores()
const WRITERS = 4
const FLUSHES = 40
const FLUSH = 500
const TEXT = 'x'.repeat(1_000)
/** What is written until the others have noticed, and waited for the lock. */
const BOUND_BYTES = 2 * MAX_LOG_BYTES

afterEach(() => Member.endAll())

const logBytes = (directory: string): number =>
  statSync(join(directory, 'holdfast.db-wal'), { throwIfNoEntry: false })?.size ?? 0

test('processes that write without a pause', { timeout: 120_000 }, async ({ annotate }) => {
  const directory = join(folder, 'busy')
  const members = await Promise.all(Array.from({ length: WRITERS }, () => Member.withStore(directory)))
  await Promise.all(members.map((member) => member.do('work', { concurrency: 50 })))
  let largest = 0
  let isOver = false
  const written = Promise.all(
    members.map(async (member) => {
      for (let flush = 0; flush < FLUSHES; flush++) await member.do('enqueue', FLUSH, { text: TEXT })
    }),
  ).finally(() => (isOver = true))
  await until(
    'all to be written',
    () => {
      largest = Math.max(largest, logBytes(directory))
      return isOver
    },
    { deadlineMs: 100_000, everyMs: 20 },
  )
  await written
  await annotate(`${WRITERS * FLUSHES * FLUSH} jobs of ${TEXT.length} bytes; largest log ${largest} bytes`)
  expect(largest).toBeLessThan(BOUND_BYTES)
  await Promise.all(members.map((member) => member.kill()))
  expect(await audited(directory)).toEqual([])
})

test('a reader that kept the log from being written back', async () => {
  const directory = join(folder, 'read')
  const member = await Member.withStore(directory)
  const reader = await openPast(directory)
  reader.exec('begin; select * from holdfast_queue')
  while (logBytes(directory) <= MAX_LOG_BYTES) await member.do('enqueue', FLUSH, { text: TEXT })
  reader.exec('commit')
  // Nobody writes any more.
  await until('the log to shrink', () => logBytes(directory) === 0, { deadlineMs: 30_000 })
  reader.close()
})
