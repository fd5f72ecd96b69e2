/** Each flush is written once, even if its answer is lost, and the memory for this is bounded. */
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import {
  freshPrefix,
  openRedisStore,
  redisMissing,
  sharedRedis,
} from '../../../test/support/servers/redis.ts'
import { startProxy } from '../../../test/support/servers/tcp-proxy.ts'
import { HoldfastError } from '../../errors.ts'
import type { FlushId } from '../../job/ids.ts'
import { seededRandom } from '../../std/random.ts'
import { VirtualClock } from '../../std/virtual-clock.ts'
import { newFlushId, newJob, newJobs, retention, uniqueWhile } from '../conformance/support.ts'
import { FLUSH_MEMORY_MS, type Store } from '../store.ts'
import { redisStore } from './index.ts'
import { Senders, type FlushAnswers } from './senders.ts'

const isWhole = (answer: Buffer): boolean => answer.toString().endsWith('\r\n')
const isScript = (chunk: Buffer): boolean => /EVAL/i.test(chunk.toString())

async function jobCount(store: Store): Promise<number> {
  return (await store.admin.list({ limit: 1_000, after: null })).jobs.length
}

describe.skipIf(redisMissing() !== '')('a flush on Redis', () => {
  test('whose answer is lost is written once when it is repeated', async () => {
    await using proxy = await startProxy(Number(new URL(sharedRedis()).port))
    const store = redisStore({
      url: proxy.url(sharedRedis()),
      prefix: freshPrefix(),
      onNotice: () => undefined,
    })
    await store.open()
    // From here on the server has the scripts, so that the next call is a single message.
    await store.enqueue({ id: newFlushId(), jobs: [newJob({ unique: uniqueWhile('unfinished', 'k') })] })
    await store.enqueue({ id: newFlushId(), jobs: newJobs(1) })
    const flushes = [
      { id: newFlushId(), jobs: newJobs(3) },
      { id: newFlushId(), jobs: [newJob(), newJob({ unique: uniqueWhile('unfinished', 'k') })] },
    ]
    for (const flush of flushes) {
      const lost = proxy.loseNextReply(isScript, isWhole)
      await expect(store.enqueue(flush)).rejects.toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
      await lost
      const before = await jobCount(store)
      const answers = await store.enqueue(flush)
      expect(answers.map(({ id }) => id)[0]).toBe(flush.jobs[0]?.id)
      expect(await store.enqueue(flush)).toEqual(answers)
      expect(await jobCount(store)).toBe(before)
    }
    expect(await jobCount(store)).toBe(2 + 3 + 1)
    await store.close()
  })

  test('leaves one entry a sender on the server, and none when the sender is not used for long', async () => {
    const prefix = freshPrefix()
    const under = await openRedisStore({ url: sharedRedis(), prefix })
    const { store } = under
    const redis = new Redis(sharedRedis())
    const senders = (): Promise<number> => redis.hlen(`${prefix}:{${prefix}}:senders`)
    for (let flush = 0; flush < 20; flush++) await store.enqueue({ id: newFlushId(), jobs: newJobs(1) })
    expect(await senders()).toBe(1)
    await Promise.all(Array.from({ length: 5 }, () => store.enqueue({ id: newFlushId(), jobs: newJobs(1) })))
    expect(await senders()).toBe(5)
    await under.advance(FLUSH_MEMORY_MS + 60_000)
    await store.upkeep.prune(retention(), 1)
    expect(await senders()).toBe(5)
    await under.advance(FLUSH_MEMORY_MS)
    await store.upkeep.prune(retention(), 1)
    expect(await senders()).toBe(0)
    await store.enqueue({ id: newFlushId(), jobs: newJobs(1) })
    redis.disconnect()
    await under.close()
  })

  test('with an id that exists is refused wholly', async () => {
    const under = await openRedisStore({ url: sharedRedis() })
    const { store } = under
    const [known, fresh] = [newJob(), newJob()]
    await store.enqueue({ id: newFlushId(), jobs: [known] })
    for (const unique of [null, uniqueWhile('unfinished')]) {
      const jobs = [{ ...fresh, unique }, known]
      await expect(store.enqueue({ id: newFlushId(), jobs })).rejects.toMatchObject({
        code: 'HF_STORE_CONTRACT',
        message: expect.stringContaining(known.id),
      })
    }
    expect(await store.admin.get(fresh.id)).toBeNull()
    await expect(store.enqueue({ id: newFlushId(), jobs: newJobs(1_001) })).rejects.toMatchObject({
      code: 'HF_STORE_CONTRACT',
    })
    await under.close()
  })
})

describe('senders', () => {
  const make = (): {
    senders: Senders
    clock: VirtualClock
    sent: string[]
    send: typeof ok
    fail: typeof ok
  } => {
    const clock = new VirtualClock()
    const sent: string[] = []
    const note = (sender: string, seq: number): void => void sent.push(`${sender.split(':')[1]} ${seq}`)
    return {
      clock,
      sent,
      senders: new Senders(clock, seededRandom(1)),
      send: async (sender, seq) => {
        note(sender, seq)
        return null
      },
      fail: async (sender, seq) => {
        note(sender, seq)
        throw new HoldfastError('HF_STORE_UNREACHABLE', 'away')
      },
    }
  }
  const ok = async (_lane: string, _seq: number): Promise<FlushAnswers> => null
  const flush = (n: number): FlushId => `flush ${n}` as FlushId

  test('one after the other use one sender with growing numbers', async () => {
    const { senders, sent, send } = make()
    for (const n of [1, 2, 3]) await senders.once(flush(n), send)
    expect(sent).toEqual(['0 1', '0 2', '0 3'])
  })

  test('a repeat of an answered flush sends nothing', async () => {
    const { senders, sent, send } = make()
    await senders.once(flush(1), send)
    await senders.once(flush(1), send)
    expect(sent).toEqual(['0 1'])
  })

  test('a flush without an answer keeps its sender and number, and others take another', async () => {
    const { senders, sent, send, fail } = make()
    await expect(senders.once(flush(1), fail)).rejects.toThrow('away')
    await senders.once(flush(2), send)
    await senders.once(flush(1), send)
    await senders.once(flush(3), send)
    expect(sent).toEqual(['0 1', '1 1', '0 1', '0 2'])
  })

  test('a flush that was refused leaves its sender to others', async () => {
    const { senders, sent, send } = make()
    const refuse = (): Promise<FlushAnswers> => Promise.reject(new HoldfastError('HF_STORE_FULL', 'full'))
    await expect(senders.once(flush(1), refuse)).rejects.toThrow('full')
    await senders.once(flush(2), send)
    expect(sent).toEqual(['0 2'])
  })

  test('a sender is free again when nobody has repeated its flush for long', async () => {
    const { senders, clock, sent, send, fail } = make()
    await expect(senders.once(flush(1), fail)).rejects.toThrow('away')
    await clock.advance(FLUSH_MEMORY_MS + 1)
    await senders.once(flush(2), send)
    expect(sent).toEqual(['0 1', '0 2'])
  })
})
