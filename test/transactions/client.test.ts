/** What an enqueue in the caller's transaction does on this side of the store. */
import { holdfast, type Tx } from 'holdfast'
import { memoryStore } from 'holdfast/memory'
import type { EnqueueAnswer, Flush, Store } from 'holdfast/store'
import { testQueue, VirtualClock } from 'holdfast/testing'
import { afterEach, describe, expect, test } from 'vitest'
import { Hub } from '../../src/hub.ts'
import { deferred, letPromisesRun, thrownBy, Told } from '../support/virtual.ts'

const tx: Tx = { query: () => Promise.reject(new Error('nobody asks it here')) }
const other: Tx = { query: () => Promise.reject(new Error('nor this')) }

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const hf of open.splice(0)) await hf.close()
})

/** A holdfast() on a store that keeps what it was asked to write in transactions. */
function setUp(answer: (flush: Flush) => Promise<readonly EnqueueAnswer[]> = inserted, timeout = 10_000) {
  const flushes: { readonly tx: unknown; readonly flush: Flush }[] = []
  const plain: Flush[] = []
  let opened = 0
  const memory = memoryStore()
  const store: Store = {
    ...memory,
    open: () => (opened++, memory.open()),
    enqueue: (flush) => {
      if (flush.tx === undefined) return (plain.push(flush), memory.enqueue(flush))
      flushes.push({ tx: flush.tx, flush })
      return answer(flush)
    },
    transactions: { commit: () => Promise.reject(new Error('nobody commits here')) },
  }
  const hf = holdfast({ store, logger: false, timeout })
  open.push(hf)
  const job = hf.job({ name: 'note', run: () => undefined, input: undefined })
  return { hf, job, flushes, plain, told: new Told(hf), opened: () => opened }
}

function inserted({ jobs }: Flush): Promise<readonly EnqueueAnswer[]> {
  return Promise.resolve(jobs.map(({ id }) => ({ id, outcome: 'inserted' })))
}

function* times(count: number): Generator<undefined> {
  for (let n = 0; n < count; n++) yield undefined
}

describe('an enqueue with { tx }', () => {
  test('goes alone, in its own transaction, whatever else is enqueued meanwhile', async () => {
    const { job, flushes, plain } = setUp()
    await Promise.all([
      job.enqueue(undefined, { tx }),
      job.enqueue(),
      job.enqueue(undefined, { tx: other }),
      job.enqueue(),
      job.enqueue(undefined, { tx }),
    ])
    expect(flushes.map((one) => [one.tx, one.flush.jobs.length])).toEqual([
      [tx, 1],
      [other, 1],
      [tx, 1],
    ])
    expect(plain.flatMap(({ jobs }) => jobs)).toHaveLength(2)
  })

  test('opens the store first, once', async () => {
    const { job, opened } = setUp()
    await job.enqueue(undefined, { tx })
    await job.enqueue(undefined, { tx })
    expect(opened()).toBe(1)
  })

  test('takes the other options, and gives back a handle', async () => {
    const { job, flushes } = setUp()
    const handle = await job.enqueue(undefined, { tx, priority: 'urgent', in: '1h' })
    expect(handle).toMatchObject({ outcome: 'inserted', duplicate: false })
    expect(flushes[0]?.flush.jobs).toMatchObject([{ id: handle.id, priority: 9, due: { inMs: 3_600_000 } }])
    expect(await thrownBy(job.enqueue(undefined, { tx, prio: 9 } as object))).toMatchObject({
      code: 'HF_BAD_OPTION',
    })
  })

  test('without a transaction in it is like any other', async () => {
    const { job, flushes, plain } = setUp()
    await job.enqueue(undefined, { tx: undefined, tags: ['a'] })
    expect([flushes.length, plain.length]).toEqual([0, 1])
  })

  test('is not told of: whether the job will ever be is not known', async () => {
    const { hf, job, told } = setUp()
    await job.enqueue(undefined, { tx })
    await job.enqueueMany([undefined, undefined], { tx })
    await hf.enqueueMany([job.with()], { tx })
    expect(told.of('job.enqueued')).toEqual([])
  })

  test('is not tried again, and what is thrown comes out as it is', async () => {
    const error = Object.assign(new Error('deadlock detected'), { code: '40P01', severity: 'ERROR' })
    const { hf, job, flushes, told } = setUp(() => Promise.reject(error))
    expect(await thrownBy(job.enqueue(undefined, { tx }))).toBe(error)
    expect(await thrownBy(hf.enqueueMany([job.with()], { tx }))).toBe(error)
    expect(await thrownBy(job.enqueueMany([undefined], { tx }))).toBe(error)
    expect(flushes).toHaveLength(3)
    expect(told.of('store.down')).toEqual([])
  })

  test('has no deadline: the transaction has those that its owner gave it', async () => {
    const gate = deferred()
    const { hf, job, flushes } = setUp(async (flush) => {
      await gate.promise
      return inserted(flush)
    })
    const clock = new VirtualClock()
    Hub.of(hf).core.moveTo({ clock })
    const enqueued = job.enqueue(undefined, { tx })
    while (flushes.length === 0) await letPromisesRun()
    await clock.advance(600_000)
    gate.resolve()
    expect(await enqueued).toMatchObject({ outcome: 'inserted' })
  })

  test('is refused after close', async () => {
    const { hf, job, flushes } = setUp()
    await job.enqueue(undefined, { tx })
    await hf.close()
    expect(await thrownBy(job.enqueue(undefined, { tx }))).toMatchObject({ code: 'HF_CLOSED' })
    expect(flushes).toHaveLength(1)
  })

  test('also sends a message to a queue', async () => {
    const { hf, flushes } = setUp()
    await hf.queue('default').send({ a: 1 }, { tx, name: 'note-2' })
    expect(flushes.map((one) => one.flush.jobs)).toMatchObject([[{ name: 'note-2', payload: '{"a":1}' }]])
  })
})

describe('enqueueMany with { tx }', () => {
  test('writes one batch after the other, and counts as ever', async () => {
    let underWay = 0
    let most = 0
    const { job, flushes } = setUp(async (flush) => {
      most = Math.max(most, ++underWay)
      await letPromisesRun()
      underWay--
      return inserted(flush)
    })
    expect(await job.enqueueMany(times(2_500), { tx })).toEqual({ inserted: 2_500, duplicates: 0 })
    expect(flushes.map(({ flush }) => flush.jobs.length)).toEqual([1_000, 1_000, 500])
    expect(most).toBe(1)
  })

  test('ends with the first error, reads no further, and closes what it reads from', async () => {
    const error = new Error('current transaction is aborted')
    let calls = 0
    const { job } = setUp((flush) => (++calls === 2 ? Promise.reject(error) : inserted(flush)))
    let read = 0
    let closed = false
    const endless = function* (): Generator<undefined> {
      try {
        for (;;) {
          read++
          yield undefined
        }
      } finally {
        closed = true
      }
    }
    expect(await thrownBy(job.enqueueMany(endless(), { tx }))).toBe(error)
    expect([calls, read, closed]).toEqual([2, 2_000, true])
  })

  test('of different jobs is one flush, and no job of it has a transaction of its own', async () => {
    const { hf, job, flushes } = setUp()
    await hf.enqueueMany([job.with(), job.with()], { tx })
    expect(flushes.map(({ flush }) => flush.jobs.length)).toEqual([2])
    expect(() => job.with(undefined, { tx } as object)).toThrow('for itself alone')
    expect(await thrownBy(hf.enqueueMany([job.with()], { trx: tx } as object))).toMatchObject({
      code: 'HF_BAD_OPTION',
    })
  })
})

describe('a store without transactions', () => {
  test('refuses { tx } in every place, before anything is asked of it', async () => {
    let asked = 0
    const store = { ...memoryStore(), open: () => Promise.reject(new Error(`asked ${++asked} times`)) }
    const hf = holdfast({ store, logger: false })
    const job = hf.job({ name: 'note', run: () => undefined })
    const refusals = await Promise.all([
      thrownBy(job.enqueue(undefined, { tx })),
      thrownBy(job.enqueueMany([], { tx })),
      thrownBy(hf.enqueueMany([], { tx })),
      thrownBy(hf.queue('default').send('x', { tx })),
    ])
    for (const refusal of refusals)
      expect(refusal).toMatchObject({
        code: 'HF_NO_TRANSACTIONS',
        message: 'The memory store has no transactions to enqueue in.',
        hint: expect.stringContaining('PostgreSQL'),
      })
    expect(asked).toBe(0)
  })
})

describe('a test queue', () => {
  test('takes what code under test enqueues in a transaction, at once', async () => {
    const { hf, job } = setUp()
    await using t = await testQueue(hf)
    await job.enqueue(undefined, { tx })
    expect(await t.enqueued(job)).toHaveLength(1)
    expect(await t.drain()).toMatchObject({ completed: 1 })
  })
})
