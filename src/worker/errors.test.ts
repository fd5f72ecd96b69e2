/** Errors that are no outage: they are told as what they are, and the worker goes on. */
import { describe, expect, test } from 'vitest'
import { HoldfastError } from '../errors.ts'
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
