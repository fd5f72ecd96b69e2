/** What workers can do, on every store (memory, embedded, postgres, redis, a cluster): batches, dead letters, attempts, expiry, edits, who works. */
import { Fatal, holdfast } from 'holdfast'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { EVERY_STORE, START_MS, startFleet, type Fleet } from './support/every-store.ts'

const input = z.object({ n: z.int() })
/** Far beyond what anything here takes: a loaded machine is no failure. */
const until = (fact: () => unknown): Promise<unknown> => vi.waitFor(fact, { timeout: 25_000, interval: 20 })

describe.each(EVERY_STORE)('on $name', ({ missing, start }) => {
  if (missing !== undefined && missing() !== '') return test.skip(missing(), () => undefined)

  let fleet: Fleet
  beforeAll(async () => {
    fleet = await startFleet(start)
  }, START_MS)
  afterAll(() => fleet.close())
  const queues = { default: {}, rows: {}, later: {}, idle: {} }
  const join = () => holdfast({ store: fleet.connect(), queues, logger: false, timeout: '30s' })

  test('a batch handler gets many jobs a call, and what fails is retried alone', async () => {
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
    let completed = 0
    hf.on('job.completed', () => void completed++)
    await hf.work({ queues: ['rows'], poll: 50 })
    await until(() => expect(completed).toBe(250))
    for (const n of [0, 1, 50, 51, 100, 149, 150, 200, 249])
      expect(await (await row.get(ids[n]!))!.result()).toBe(n % 50 === 0 ? 2 * n : n)
    expect(Math.max(...sizes)).toBe(100)
    expect(sizes.reduce((sum, size) => sum + size)).toBe(255)
  })

  test('a dead letter tells of its attempts, is handled, grouped, replayed with another input, and discarded', async () => {
    await using hf = join()
    const handled: string[] = []
    hf.deadLetters.handle((letter) => void handled.push(letter.id))
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
    await until(async () => expect(await fleet.connect().notes.list('cursor')).toHaveLength(1))
    const { ids } = await job.enqueueMany([{ n: -5 }, { n: -1 }, { n: -7 }])
    await until(() => expect(handled.toSorted()).toEqual([...ids].toSorted()))

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

  test('a job that waits can be edited, and one that is too late is not run', async () => {
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

  test('a worker is seen from another process', async () => {
    await using mine = join()
    await using other = join()
    mine.job({ name: 'seen', run: () => undefined })
    const worker = await mine.work({ name: 'mail', queues: ['idle'] })
    const mail = async () => (await other.workers.status()).filter(({ name }) => name === 'mail')
    await until(async () => expect(await mail()).toMatchObject([{ id: worker.id, state: 'running' }]))
    await worker.stop()
    await until(async () => expect(await mail()).toEqual([]))
  })
})
