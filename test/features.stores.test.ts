/** What workers can do, on every store (memory, embedded, postgres, redis, a cluster): batches, dead letters, attempts, expiry, edits, the list of workers. */
import { Fatal, holdfast } from 'holdfast'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { EVERY_STORE, START_MS, startFleet, type Fleet } from './support/every-store.ts'
import { Signal } from './support/signal.ts'
import { eventually } from './support/until.ts'
import { deferred } from './support/virtual.ts'

const input = z.object({ n: z.int() })

// Concurrent, because most of the time goes by until somebody looks for new dead letters.
describe.concurrent.each(EVERY_STORE)('on $name', ({ missing, start }) => {
  if (missing !== undefined && missing() !== '') return test.skip(missing(), () => undefined)

  let fleet: Fleet
  beforeAll(async () => {
    fleet = await startFleet(start)
  }, START_MS)
  afterAll(() => fleet.close())
  const queues = { default: {}, rows: {}, later: {}, idle: {} }
  /** A process; `onNote` is told of each note that it has written. */
  const join = (onNote: (kind: string) => unknown = () => undefined) => {
    const store = fleet.connect()
    const put: typeof store.notes.put = async (kind, ...note) => {
      const answer = await store.notes.put(kind, ...note)
      onNote(kind)
      return answer
    }
    const notes = { ...store.notes, put }
    return holdfast({ store: { ...store, notes }, queues, logger: false, timeout: '30s' })
  }

  test.sequential('a batch handler gets many jobs per call, and each failed job is retried alone', async () => {
    await using hf = join()
    const sizes: number[] = []
    const row = hf.batchJob({
      name: 'row',
      queue: 'rows',
      input,
      batch: { size: 100 },
      retry: { attempts: 2, delay: 1 },
      run: ({ jobs }) => {
        sizes.push(jobs.length)
        return jobs.map(({ input: { n }, job }) =>
          n % 50 === 0 && job.attempt === 1 ? new Error(`not ${n}`) : n * job.attempt,
        )
      },
    })
    const { ids } = await row.enqueueMany(Array.from({ length: 250 }, (_, n) => ({ n })))
    const news = new Signal()
    let completed = 0
    hf.on('job.completed', () => {
      completed++
      news.notify()
    })
    await hf.work({ queues: ['rows'], poll: 50 })
    await news.until(() => expect(completed).toBe(250))
    const results = ids.map(async (id) => (await row.get(id))!.result())
    expect(await Promise.all(results)).toEqual(ids.map((_, n) => (n % 50 === 0 ? 2 * n : n)))
    expect(Math.max(...sizes)).toBe(100)
    expect(sizes.reduce((sum, size) => sum + size)).toBe(255)
  })

  test.sequential('a dead letter has its attempts, and is handled, grouped, replayed with another input and discarded', async () => {
    const watching = deferred()
    await using hf = join((kind) => kind === 'cursor' && watching.resolve())
    const news = new Signal()
    const handled: string[] = []
    hf.deadLetters.handle((letter) => {
      handled.push(letter.id)
      news.notify()
    })
    const job = hf.job({
      name: 'picky',
      input,
      retry: { attempts: 2, delay: 1 },
      run: ({ input: { n } }) => {
        if (n < 0) throw n === -1 ? new Fatal('never') : new Error('below zero')
        return n
      },
    })
    const worker = await hf.work({ queues: ['default'], poll: 50 })
    await watching.promise
    const { ids } = await job.enqueueMany([{ n: -5 }, { n: -1 }, { n: -7 }])
    await news.until(() => expect(handled.toSorted()).toEqual([...ids].toSorted()))

    const groups = await hf.deadLetters.groups({ jobs: ['picky'] })
    expect(groups.map(({ count, kind, message }) => [count, kind, message])).toEqual([
      [2, 'transient', 'below zero'],
      [1, 'permanent', 'never'],
    ])
    const letter = await hf.deadLetters.get(ids[0]!)
    expect(letter?.attempts).toMatchObject([
      { attempt: 1, outcome: 'failed', worker: worker.id, error: { message: 'below zero' } },
      { attempt: 2, outcome: 'failed', worker: worker.id, error: { message: 'below zero' } },
    ])
    const replayed = await hf.deadLetters.replay(
      { fingerprints: [groups[0]!.fingerprint] },
      { input: (dead: { input: unknown }) => ({ n: -(dead.input as { n: number }).n }) },
    )
    expect(replayed).toEqual({ changed: 2, skipped: 0, cursor: null })
    const handle = await job.get(ids[0]!)
    expect(await handle!.result({ timeout: '25s' })).toBe(5)
    const outcomes = (await handle!.attempts()).map(({ outcome, worker: by }) => [outcome, by])
    expect(outcomes).toEqual([
      ['failed', worker.id],
      ['failed', worker.id],
      ['completed', worker.id],
    ])
    expect(await hf.deadLetters.discard({ ids: [ids[1]!] })).toMatchObject({ changed: 1 })
    expect((await hf.deadLetters.list({ jobs: ['picky'] })).letters).toEqual([])
  })

  test.sequential('a waiting job can be edited, and an expired one is not run', async () => {
    await using hf = join()
    const ran: number[] = []
    const job = hf.job({
      name: 'later',
      queue: 'later',
      input,
      run: (context) => void ran.push(context.input.n),
    })
    const edited = await job.enqueue({ n: 1 }, { in: '1h' })
    const late = await job.enqueue({ n: 2 }, { expiresIn: '1ms' })
    expect(await job.edit(edited.id, { input: { n: 3 }, in: 0, priority: 'urgent' })).toBe(true)
    await hf.work({ queues: ['later'], poll: 50 })
    await edited.result({ timeout: '25s' })
    await expect(late.result({ timeout: '25s' })).rejects.toMatchObject({ code: 'HF_JOB_CANCELLED' })
    expect(ran).toEqual([3])
    expect(await job.edit(edited.id, { in: '1h' })).toBe(false)
  })

  test.sequential('a worker is seen from another process', async () => {
    await using mine = join()
    await using other = join()
    mine.job({ name: 'seen', run: () => undefined })
    const worker = await mine.work({ name: 'mail', queues: ['idle'] })
    const mail = async () => (await other.workers.status()).filter(({ name }) => name === 'mail')
    await eventually(async () => expect(await mail()).toMatchObject([{ id: worker.id, state: 'running' }]))
    await worker.stop()
    await eventually(async () => expect(await mail()).toEqual([]))
  })
})
