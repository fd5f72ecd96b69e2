/** What a publish in the caller's transaction does on this side of the store. */
import { holdfast, type Tx } from 'holdfast'
import { memoryStore } from 'holdfast/memory'
import type { EnqueueAnswer, Flush, Store } from 'holdfast/store'
import { testQueue } from 'holdfast/testing'
import { afterEach, describe, expect, test } from 'vitest'
import { thrownBy, Told } from '../support/virtual.ts'

const tx: Tx = { query: () => Promise.reject(new Error('nobody asks it here')) }
const run = (): void => undefined

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const hf of open.splice(0)) await hf.close()
})

/** On a store that keeps what it was asked to write in transactions. */
function setUp({ answer = inserted } = {}) {
  const calls: string[] = []
  const flushes: Flush[] = []
  const memory = memoryStore()
  const { notes } = memory
  const store: Store = {
    ...memory,
    notes: {
      ...notes,
      list: (kind, given) => {
        calls.push(given === tx ? 'list in tx' : 'list')
        return notes.list(kind)
      },
    },
    enqueue: (flush) => {
      if (flush.tx === undefined) return (calls.push('enqueue'), memory.enqueue(flush))
      calls.push(flush.tx === tx ? 'enqueue in tx' : 'enqueue in another')
      flushes.push(flush)
      return answer(flush)
    },
    transactions: { commit: () => Promise.reject(new Error('nobody commits here')) },
  }
  const hf = holdfast({ store, logger: false })
  open.push(hf)
  const paid = hf.event('order.paid')
  const subscribe = (...names: string[]) =>
    Promise.all(names.map((name) => hf.subscribe({ name, to: paid, run }).subscribe()))
  return { hf, paid, subscribe, calls, flushes, told: new Told(hf) }
}

function inserted({ jobs }: Flush): Promise<readonly EnqueueAnswer[]> {
  return Promise.resolve(jobs.map(({ id }) => ({ id, outcome: 'inserted' })))
}

describe('a publish with { tx }', () => {
  test('reads and writes in the transaction, alone, and without a word to listeners', async () => {
    const { paid, subscribe, calls, flushes, told } = setUp()
    await subscribe('a', 'b')
    const { subscribers, jobs } = await paid.publish(undefined, { tx })
    expect(calls).toEqual(['list in tx', 'enqueue in tx'])
    expect(subscribers).toEqual(['a', 'b'])
    expect(flushes).toMatchObject([{ jobs: jobs.map((id) => ({ id })) }])
    await Promise.all([paid.publish(undefined, { tx }), paid.publish(undefined, { tx })])
    expect(flushes.map((flush) => flush.jobs.length)).toEqual([2, 2, 2])
    expect(told.of('job.enqueued')).toEqual([])
  })

  test('that nobody hears writes nothing, and tells nobody: there may be no such event', async () => {
    const { paid, flushes, told } = setUp()
    expect(await paid.publish(undefined, { tx })).toMatchObject({ subscribers: [] })
    expect([flushes, told.of('event.unsubscribed')]).toEqual([[], []])
  })

  test('is not tried again, and what is thrown comes out as it is', async () => {
    const error = Object.assign(new Error('deadlock detected'), { code: '40P01' })
    const { paid, subscribe, flushes, told } = setUp({ answer: () => Promise.reject(error) })
    await subscribe('a')
    expect(await thrownBy(paid.publish(undefined, { tx }))).toBe(error)
    expect(await thrownBy(paid.publishMany([undefined, undefined], { tx }))).toBe(error)
    expect(flushes).toHaveLength(2)
    expect(told.of('store.down')).toEqual([])
  })

  test('of many goes one batch after the other, and ends with the first error', async () => {
    const error = new Error('current transaction is aborted')
    let calls = 0
    const { paid, subscribe, flushes } = setUp({
      answer: (flush) => (++calls === 3 ? Promise.reject(error) : inserted(flush)),
    })
    await subscribe('a')
    const times = function* (count: number): Generator<undefined> {
      for (let n = 0; n < count; n++) yield undefined
    }
    expect(await paid.publishMany(times(1_500), { tx })).toEqual({ published: 1_500, jobs: 1_500 })
    expect(await thrownBy(paid.publishMany(times(1e9), { tx }))).toBe(error)
    expect(flushes.map((flush) => flush.jobs.length)).toEqual([1_000, 500, 1_000])
  })

  test('is taken at once by a test queue', async () => {
    const ran: string[] = []
    const { hf, paid } = setUp()
    hf.subscribe({ name: 'note', to: paid, run: ({ input }) => void ran.push(input.name) })
    await using t = await testQueue(hf)
    await paid.publish(undefined, { tx })
    expect(await t.drain()).toMatchObject({ completed: 1 })
    expect(ran).toEqual(['order.paid'])
  })
})
