/** A flush whose answer is lost on the way, and is sent again. */
import assert from 'node:assert/strict'
import { newFlushId, newJobs } from '../../../src/stores/conformance/support.ts'
import { openRedisStore } from '../../support/servers/redis-store.ts'
import { startProxy } from '../../support/servers/tcp-proxy.ts'
import type { EditText } from '../mutant.ts'

const isWhole = (answer: Buffer): boolean => answer.toString().endsWith('\r\n')
const isScript = (chunk: Buffer): boolean => /EVAL/i.test(chunk.toString())

export async function repeatsLostFlush(url: string, edit: EditText): Promise<void> {
  await using proxy = await startProxy(Number(new URL(url).port))
  const { store } = await openRedisStore({ url: proxy.url(url), edit })
  try {
    // The script is known from here on, so that the next flush is one message.
    await store.enqueue({ id: newFlushId(), jobs: newJobs(1) })
    const flush = { id: newFlushId(), jobs: newJobs(3) }
    const lost = proxy.loseNextReply(isScript, isWhole)
    await assert.rejects(store.enqueue(flush))
    await lost
    assert.deepEqual(
      (await store.enqueue(flush)).map(({ outcome }) => outcome),
      ['inserted', 'inserted', 'inserted'],
    )
    assert.equal((await store.admin.list({ limit: 10, after: null })).jobs.length, 4)
  } finally {
    await store.close()
  }
}
