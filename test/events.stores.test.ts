/** Domain events on every store (memory, embedded, postgres, redis, a cluster), and in transactions on the stores that have them. */
import { holdfast } from 'holdfast'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { EVERY_STORE, START_MS, startFleet, type Fleet } from './support/every-store.ts'
import { thrownBy } from './support/virtual.ts'

const order = z.object({ id: z.string(), cents: z.coerce.number<string>() })

describe.each(EVERY_STORE)('domain events on $name', ({ missing, transactions, start }) => {
  if (missing !== undefined && missing() !== '') return test.skip(missing(), () => undefined)

  let fleet: Fleet
  beforeAll(async () => {
    fleet = await startFleet(start)
  }, START_MS)
  afterAll(() => fleet.close())
  const join = () =>
    holdfast({ store: fleet.connect(), queues: { default: {}, events: {}, counted: {} }, logger: false })

  test('reach the subscribers of another process, each once, until they unsubscribe', async () => {
    const [shop, office] = [join(), join()]
    const seen: string[] = []
    const heard = new Promise<void>((resolve) => {
      office.on('job.completed', () => void (seen.length === 3 && resolve()))
    })
    const paidThere = office.event('order.paid', order)
    const book = office.subscribe({
      name: 'book',
      to: paidThere,
      run: ({ input }) => void seen.push(`book ${input.data.id} ${input.data.cents + 1}`),
    })
    const audit = office.subscribe({
      name: 'audit',
      to: 'order.**',
      run: ({ input, job }) => void seen.push(`audit ${input.name} ${job.correlationId === input.id}`),
    })
    await office.work({ poll: 50 })

    const paid = shop.event('order.paid', order)
    const shipped = shop.event('order.shipped.late')
    expect(await paid.publish({ id: 'o1', cents: '99' })).toMatchObject({ subscribers: ['audit', 'book'] })
    expect(await shipped.publish()).toMatchObject({ subscribers: ['audit'] })
    await heard
    expect(seen.sort()).toEqual(['audit order.paid true', 'audit order.shipped.late true', 'book o1 100'])

    expect(await audit.unsubscribe()).toBe(true)
    expect(await shop.subscriptions.list()).toMatchObject([{ name: 'book', to: ['order.paid'] }])
    expect(await shipped.publish()).toMatchObject({ subscribers: [], jobs: [] })
    await book.unsubscribe()
    await Promise.all([shop.close(), office.close()])
  })

  test('of many publishers at once and of one that has many all arrive', async () => {
    const hf = join()
    const counted = hf.event('counted', z.object({ n: z.int() }))
    const subscribers = ['a', 'b', 'c'].map((name) =>
      hf.subscribe({ name, to: counted, queue: 'counted', run: () => undefined }),
    )
    for (const subscriber of subscribers) await subscriber.subscribe()
    await Promise.all(Array.from({ length: 200 }, (_, n) => counted.publish({ n })))
    function* numbers() {
      for (let n = 0; n < 1_100; n++) yield { n: n === 7 ? 0.5 : n }
    }
    const error = await thrownBy(counted.publishMany(numbers()))
    expect(error).toMatchObject({ code: 'HF_PARTIAL_PUBLISH', published: 1_099, failures: [{ index: 7 }] })
    const queue = (await hf.queues()).find((status) => status.queue === 'counted')
    expect(queue?.counts.ready).toBe(3 * (200 + 1_099))
    for (const subscriber of subscribers) await subscriber.unsubscribe()
    await hf.close()
  })

  test.runIf(transactions)('in a transaction are there if and only if it commits', async () => {
    const hf = join()
    const paid = hf.event('order.paid')
    const seen: string[] = []
    const receipt = hf.subscribe({
      name: 'receipt',
      to: paid,
      queue: 'events',
      run: ({ job }) => void seen.push(job.correlationId),
    })
    const pay = hf.job({
      name: 'pay',
      retry: { attempts: 2, delay: 1 },
      run: ({ commit, job }) =>
        commit(async (tx) => {
          const { subscribers } = await paid.publish(undefined, { tx })
          await paid.publishMany([undefined, undefined], { tx })
          if (job.attempt === 1) throw new Error('declined')
          return subscribers
        }),
    })
    await receipt.subscribe()
    const ended = new Promise<void>((resolve) => {
      hf.on('job.completed', () => void (seen.length === 3 && resolve()))
    })
    await hf.work({ queues: ['default', 'events'], poll: 50 })
    const handle = await pay.enqueue(undefined, { correlationId: 'payment' })
    expect(await handle.result()).toEqual(['receipt'])
    await ended
    // The attempt that was rolled back left nothing: its jobs would have run by now.
    expect(seen).toEqual(['payment', 'payment', 'payment'])
    expect((await hf.queues()).find(({ queue }) => queue === 'events')?.counts.completed).toBe(3)
    await receipt.unsubscribe()
    await hf.close()
  })

  test.runIf(!transactions)('in a transaction are refused', async () => {
    const hf = join()
    const paid = hf.event('order.paid')
    const tx = { query: () => Promise.resolve({ rows: [] }) }
    expect(await thrownBy(paid.publish(undefined, { tx }))).toMatchObject({ code: 'HF_NO_TRANSACTIONS' })
    expect(await thrownBy(paid.publishMany([], { tx }))).toMatchObject({ code: 'HF_NO_TRANSACTIONS' })
    await hf.close()
  })
})
