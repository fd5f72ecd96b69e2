/** Enqueues of which the store refuses a value, or that it has no room for. */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { alone, busy, requestLost, thrownBy, type Call } from '../../test/support/virtual.ts'
import { HoldfastError, type ErrorCode } from '../errors.ts'
import type { Flush } from '../stores/store.ts'

const run = (): void => undefined
const refusal = new HoldfastError('HF_STORE_REFUSED', 'The database refused a value (SQLSTATE 22021).')
const refuses = (error: Error) => () => Promise.reject(error)

/** Flushes with one of these numbers in them. */
function withNumber(...numbers: readonly number[]): (call: Call) => boolean {
  return ({ method, args }) =>
    method === 'enqueue' && (args[0] as Flush).jobs.some(({ payload }) => numbers.includes(Number(payload)))
}

describe('a value that the store refuses', () => {
  test('fails its own enqueue at once; those that travel with it are enqueued', async () => {
    const { hf, world, line, told } = alone()
    const job = hf.job({ name: 'job', input: z.number(), run })
    line.fail(withNumber(4, 9), refuses(refusal))
    const ends = await Promise.allSettled(Array.from({ length: 12 }, (_, n) => job.enqueue(n)))
    const failed = ends.flatMap((end, n) => (end.status === 'rejected' ? [[n, end.reason]] : []))
    expect(failed).toEqual([
      [4, refusal],
      [9, refusal],
    ])
    expect(await world.counts()).toEqual({ ready: 10 })
    expect(world.nowMs).toBe(0)
    expect(told.of('store.down')).toEqual([])
    expect(told.of('store.unusable')).toEqual([])
  })

  test('is listed by its index in an enqueueMany, which reads on', async () => {
    const { hf, world, line } = alone()
    const job = hf.job({ name: 'job', input: z.number(), run })
    line.fail(withNumber(1_500), refuses(refusal))
    const error = await thrownBy(job.enqueueMany(Array.from({ length: 5_000 }, (_, n) => n)))
    expect(error).toMatchObject({
      code: 'HF_PARTIAL_ENQUEUE',
      failed: 1,
      inserted: 4_999,
      stoppedAt: null,
      failures: [{ index: 1_500, error: refusal }],
    })
    expect(await world.counts()).toEqual({ ready: 4_999 })
  })

  test('gives the rest of its flush no more time than the flush had', async () => {
    const { hf, world, line } = alone({ timeout: '2s' })
    const job = hf.job({ name: 'job', input: z.number(), run })
    const slowly = async (): Promise<never> => {
      await busy(world.clock, 1_500)
      throw refusal
    }
    line.fail('enqueue', slowly, 1)
    line.fail('enqueue', requestLost)
    const error = await world.run(thrownBy(job.enqueueMany(Array.from({ length: 8 }, (_, n) => n))))
    expect(error).toMatchObject({ failed: 8, failures: { 0: { error: { code: 'HF_STORE_UNREACHABLE' } } } })
    expect(world.nowMs).toBeLessThan(2_100)
  })

  test('fails all that are enqueued in one step', async () => {
    const { hf, world, line } = alone()
    const job = hf.job({ name: 'job', input: z.number(), run })
    line.fail(withNumber(2), refuses(refusal))
    expect(await thrownBy(hf.enqueueMany([1, 2, 3].map((n) => job.with(n))))).toBe(refusal)
    expect(await world.counts()).toEqual({})
  })
})

test.each<ErrorCode>(['HF_STORE_DENIED', 'HF_STORE_MISSING', 'HF_STORE_FULL'])(
  '%s is thrown at once and told once a minute, without an outage',
  async (code) => {
    const { hf, world, line, told } = alone()
    const job = hf.job({ name: 'job', run })
    const error = new HoldfastError(code, 'The store said no.')
    line.fail('enqueue', refuses(error))
    for (let count = 0; count < 3; count++) expect(await thrownBy(job.enqueue())).toBe(error)
    expect(world.nowMs).toBe(0)
    expect(told.of('store.unusable')).toEqual([{ doing: 'enqueue job "job"', error }])
    await world.advance(60_000)
    await thrownBy(job.enqueue())
    expect(told.of('store.unusable')).toHaveLength(2)
    expect(told.of('store.down')).toEqual([])
    line.mend()
    await job.enqueue()
    expect(told.of('store.up')).toEqual([])
  },
)

test('a store that denies access is not opened again and again', async () => {
  const { hf, world, line, told } = alone()
  const denied = new HoldfastError('HF_STORE_DENIED', 'The database denied access (SQLSTATE 28P01).')
  line.fail('open', refuses(denied))
  hf.job({ name: 'job', run })
  expect(await thrownBy(hf.work())).toBe(denied)
  expect(world.nowMs).toBe(0)
  expect(line.callsTo('open')).toHaveLength(1)
  expect(told.of('store.unusable')).toHaveLength(1)
})
