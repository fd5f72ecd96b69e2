/** Errors that are no outage: they are told as what they are, and the worker goes on. */
import { describe, expect, test } from 'vitest'
import { HoldfastError } from '../errors.ts'
import type { WorkerId } from '../job/ids.ts'
import type { CycleAnswer, CycleRequest } from '../stores/store.ts'
import { alone, busy, type Call, type Fault } from '../../test/support/virtual.ts'

const claims = ({ method, args }: Call): boolean =>
  method === 'cycle' && (args[0] as CycleRequest).claim !== null
const settles = ({ method, args }: Call): boolean =>
  method === 'cycle' && (args[0] as CycleRequest).settle.length > 0

/** The store takes the step and answers what no code of ours expects: a bug, there or here. */
const brokenLeases: Fault = async (perform) => {
  const answer = (await perform()) as CycleAnswer
  return { ...answer, leases: answer.leases.map((lease) => ({ ...lease, jobs: [null] })) }
}

const broken = new TypeError('this field cannot be read')
function unreadable(): never {
  throw broken
}

describe('a bug', () => {
  test('in taking in a claim is told as worker.error, is no outage, and costs no job', async () => {
    const { hf, world, line, told } = alone()
    const job = hf.job({ name: 'job', run: () => 'done' })
    const handle = await job.enqueue()
    line.fail(claims, brokenLeases, 1)
    const worker = await hf.work()
    await world.until(() => told.of('worker.error').length === 1)
    expect(told.of('worker.error')).toMatchObject([
      { worker: worker.id, doing: 'settle and claim', error: expect.any(TypeError) },
    ])
    expect(told.of('store.down')).toEqual([])
    // A heartbeat finds the lease that nobody took in, and gives the job back.
    expect(await world.run(handle.result())).toBe('done')
  })

  test('in taking in a lease leaves the other leases of the same answer alone', async () => {
    const { hf, world, line, told } = alone()
    let runs = 0
    const job = hf.job({ name: 'job', run: () => ++runs })
    const suspect = await job.enqueue()
    // It loses a worker, so that it comes in a lease of its own.
    const lost = 'lost' as WorkerId
    await world.store.register(lost, 30_000)
    await world.store.cycle({
      worker: lost,
      settle: [],
      claim: { queue: 'default', limit: 1, suspects: true },
    })
    await world.store.retire(lost)
    await world.store.upkeep.rescue(1)
    await world.advance(60_000)
    await world.store.upkeep.promote(1)
    const plain = await job.enqueue()
    let leases = 0
    line.fail(
      claims,
      async (perform) => {
        const answer = (await perform()) as CycleAnswer
        leases = answer.leases.length
        return { ...answer, leases: answer.leases.map((one, n) => (n > 0 ? one : { ...one, jobs: [null] })) }
      },
      1,
    )
    await hf.work()
    await world.until(() => told.of('job.completed').length === 1, 1_000)
    expect(leases).toBe(2)
    await world.run(Promise.all([suspect.result(), plain.result()]))
    await world.advance(60_000)
    expect(runs).toBe(2)
    expect(told.of('job.lost')).toEqual([])
  })

  test('in taking in a lease keeps all of its jobs from running here: they are given back', async () => {
    const { hf, world, line, told, clock } = alone()
    hf.batchJob({ name: 'batch', batch: { size: 5 }, run: () => undefined })
    const job = hf.job({ name: 'job', run: () => busy(clock, 120_000) })
    const [first, second] = [await job.enqueue(), await job.enqueue()]
    const nameless: Fault = async (perform) => {
      const answer = (await perform()) as CycleAnswer
      const [lease] = answer.leases
      const [one, two] = lease!.jobs
      return {
        ...answer,
        leases: [{ ...lease, jobs: [one, Object.defineProperty({ ...two }, 'name', { get: unreadable })] }],
      }
    }
    line.fail(claims, nameless, 1)
    await hf.work()
    await world.until(() => told.of('job.completed').length === 2)
    expect(told.of('worker.error')).toMatchObject([{ doing: 'settle and claim', error: broken }])
    expect(told.of('job.started').map(({ id, attempt }) => [id, attempt])).toEqual([
      [first.id, 1],
      [second.id, 1],
    ])
    expect(told.of('job.lost')).toEqual([])
  })

  test('that comes each time is backed off to ten seconds, and told each time', async () => {
    const { hf, world, line, told } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    await hf.work()
    await world.advance(1_000)
    line.fail('cycle', async () => ({ alive: true, settled: null, leases: null }))
    await job.enqueue()
    await world.advance(120_000)
    const calls = line.callsTo('cycle').length
    const errors = told.of('worker.error').length
    await world.advance(60_000)
    expect(line.callsTo('cycle').length - calls).toBeLessThanOrEqual(12)
    expect(told.of('worker.error').length - errors).toBe(line.callsTo('cycle').length - calls)
    line.mend()
    await world.until(() => told.of('job.completed').length === 1, 30_000)
    expect(told.of('store.down')).toEqual([])
  })

  test('in a heartbeat is told, and the heartbeats go on', async () => {
    const { hf, world, line, told } = alone()
    hf.job({ name: 'job', run: () => undefined })
    const worker = await hf.work()
    line.fail('heartbeat', async () => ({ alive: true, tokens: null }), 1)
    await world.until(() => told.of('worker.error').length === 1)
    expect(told.of('worker.error')).toMatchObject([{ worker: worker.id, doing: 'send a heartbeat' }])
    const beats = line.callsTo('heartbeat').length
    await world.advance(60_000)
    expect(line.callsTo('heartbeat').length).toBeGreaterThan(beats + 3)
    expect(worker.health().healthy).toBe(true)
    expect(told.of('store.down')).toEqual([])
  })
})

/** Answers a claim with these fields of a job's envelope replaced. */
function claimsWith(envelope: object | null, position = 0): Fault {
  return async (perform) => {
    const answer = (await perform()) as CycleAnswer
    const leases = answer.leases.map((lease) => ({
      ...lease,
      jobs: lease.jobs.map((job, n) => {
        if (n !== position) return job
        if (envelope === null) return { ...job, envelope }
        const descriptors = Object.getOwnPropertyDescriptors(envelope)
        return { ...job, envelope: Object.defineProperties({ ...job.envelope }, descriptors) }
      }),
    }))
    return { ...answer, leases }
  }
}

describe('an attempt that cannot be started because of a bug', () => {
  test('has failed and is retried; the jobs behind it start', async () => {
    const { hf, world, line, told } = alone()
    const job = hf.job({ name: 'job', run: () => 'done' })
    line.fail(claims, claimsWith(Object.defineProperty({}, 'timeoutMs', { get: unreadable })), 1)
    const handles = [await job.enqueue(), await job.enqueue(), await job.enqueue()]
    const [first] = handles
    const worker = await hf.work({ concurrency: 1 })
    expect(await world.run(Promise.all(handles.map((handle) => handle.result())))).toHaveLength(3)
    expect(told.of('worker.error')).toMatchObject([
      { worker: worker.id, doing: `start job ${first!.id}`, error: broken },
    ])
    expect(told.of('job.failed')).toMatchObject([{ id: first!.id, error: broken, final: false }])
    expect(worker.health()).toMatchObject({ running: 0, busy: 0 })
    expect(told.of('job.lost')).toEqual([])
  })

  test('does not make a job of the same lease run twice', async () => {
    const { hf, world, line, told, clock } = alone()
    const job = hf.job({ name: 'job', run: () => busy(clock, 120_000) })
    const [first, second] = [await job.enqueue(), await job.enqueue()]
    line.fail(claims, claimsWith(Object.defineProperty({}, 'timeoutMs', { get: unreadable }), 1), 1)
    await hf.work()
    await world.until(() => told.of('job.completed').length === 2)
    expect(told.of('job.started').map(({ id, attempt }) => [id, attempt])).toEqual([
      [first.id, 1],
      [second.id, 2],
    ])
    expect(told.of('job.lost')).toEqual([])
  })

  test('becomes a dead letter if its policy cannot be read either', async () => {
    const { hf, world, line, told } = alone()
    const job = hf.job({ name: 'job', run: () => 'done' })
    line.fail(claims, claimsWith(null), 1)
    const [first, second] = [await job.enqueue(), await job.enqueue()]
    const worker = await hf.work()
    expect(await world.run(second.result())).toBe('done')
    // Not even its event can be told.
    await world.until(() => told.of('worker.error').length === 3)
    expect(await world.record(first.id)).toMatchObject({
      state: 'dead',
      error: { kind: 'permanent', name: 'TypeError' },
      attempts: [{ outcome: 'failed' }],
    })
    expect(told.of('worker.error').map(({ doing }) => doing)).toEqual([
      `start job ${first.id}`,
      `settle job ${first.id} by its policy`,
      'settle and claim',
    ])
    expect(worker.health()).toMatchObject({ running: 0, busy: 0 })
  })
})

describe('retry overrides that cannot be read', () => {
  const run = (): never => {
    throw new Error('no')
  }

  test('because of a bug are told, and the job is settled without them', async () => {
    const { hf, world, line, told } = alone()
    const job = hf.job({ name: 'job', retry: { attempts: 2 }, run })
    const { id } = await job.enqueue()
    const retry = Object.defineProperty({}, 'delay', { get: unreadable, enumerable: true })
    line.fail(claims, claimsWith({ retry }), 1)
    await hf.work()
    await world.until(() => told.of('job.failed').length === 1)
    expect(told.of('worker.error')).toMatchObject([
      { doing: `read the retry policy of job ${id}`, error: broken },
    ])
    expect(told.of('job.failed')).toMatchObject([{ id, final: false }])
  })

  test('because a newer version wrote them are no error of the worker', async () => {
    const { hf, world, line, told } = alone()
    const job = hf.job({ name: 'job', retry: { attempts: 2 }, run })
    await job.enqueue()
    line.fail(claims, claimsWith({ retry: { delay: '1s', invented: 'later' } }), 1)
    await hf.work()
    await world.until(() => told.of('job.failed').length === 1)
    expect(told.of('worker.error')).toEqual([])
  })
})

describe('a refused permission', () => {
  const denied = new HoldfastError('HF_STORE_DENIED', 'The database denied access (SQLSTATE 42501).')
  const denies: Fault = () => Promise.reject(denied)

  test.each([
    ['to claim', claims],
    ['to settle', settles],
    ['to send heartbeats', ({ method }: Call) => method === 'heartbeat'],
  ])('%s is told as store.unusable, and neither as an outage nor as a bug', async (_, isMeant) => {
    const { hf, world, line, told, clock } = alone()
    const job = hf.job({
      name: 'job',
      run: async ({ progress }) => {
        progress(1, 2)
        await busy(clock, 2_000)
      },
    })
    line.fail(isMeant, denies)
    const worker = await hf.work()
    await job.enqueue()
    await world.advance(25_000)
    expect(told.of('store.unusable')).toMatchObject([{ error: denied }])
    expect(told.of('store.down')).toEqual([])
    expect(told.of('worker.error')).toEqual([])
    line.mend()
    await world.until(() => told.of('job.completed').length === 1, 60_000)
    expect(worker.health().healthy).toBe(true)
  })
})

describe('a settle that the store refuses in every form', () => {
  test('is told as worker.error', async () => {
    const refusal = new HoldfastError('HF_STORE_REFUSED', 'The database refused a value (SQLSTATE 22021).')
    const { hf, world, line, told } = alone()
    const job = hf.job({ name: 'job', run: () => 'no' })
    await job.enqueue()
    line.fail(settles, () => Promise.reject(refusal))
    await hf.work()
    await world.until(() => told.of('worker.error').length > 0)
    expect(told.of('worker.error')[0]).toMatchObject({ doing: 'settle and claim', error: refusal })
    expect(told.of('store.down')).toEqual([])
    line.mend()
    await world.until(() => told.of('job.failed').length === 1)
  })
})
