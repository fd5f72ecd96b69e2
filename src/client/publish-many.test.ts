import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { HoldfastError } from '../errors.ts'
import type { Flush } from '../stores/store.ts'
import { alone, busy, refused, requestLost, thrownBy } from '../../test/support/virtual.ts'

const data = z.object({ repo: z.string(), number: z.int() })
const run = (): void => undefined
const flushSizes = (calls: readonly { readonly args: readonly unknown[] }[]): number[] =>
  calls.map(({ args }) => (args[0] as Flush).jobs.length)

describe('publishMany', () => {
  function* numbers(count: number): Generator<{ repo: string; number: number }> {
    for (let number = 0; number < count; number++) yield { repo: 'r', number }
  }

  test('publishes any number, with one read for each thousand', async () => {
    const { hf, line, world } = alone()
    const merged = hf.event('pull_request.merged', data)
    for (const name of ['a', 'b']) await hf.subscribe({ name, to: merged, run }).subscribe()
    expect(await merged.publishMany(numbers(2_500))).toEqual({ published: 2_500, jobs: 5_000 })
    expect(line.callsTo('notes.list')).toHaveLength(3)
    expect(flushSizes(line.callsTo('enqueue'))).toEqual([1_000, 1_000, 1_000, 1_000, 1_000])
    expect(await world.counts()).toEqual({ ready: 5_000 })
  })

  test('takes an asynchronous generator, and nothing at all', async () => {
    const { hf, line } = alone()
    const merged = hf.event('pull_request.merged', data)
    async function* rows() {
      for (const row of numbers(3)) yield await Promise.resolve(row)
    }
    expect(await merged.publishMany([])).toEqual({ published: 0, jobs: 0 })
    expect(line.calls).toEqual([])
    expect(await merged.publishMany(rows())).toEqual({ published: 3, jobs: 0 })
  })

  test('lists by index what was refused, and publishes everything else', async () => {
    const { hf, world } = alone()
    const merged = hf.event('pull_request.merged', data)
    await hf.subscribe({ name: 'a', to: merged, run }).subscribe()
    function* rows() {
      yield* numbers(2)
      yield { repo: 'r', number: 0.5 }
      yield* numbers(2)
      throw new Error('torn')
    }
    expect(await thrownBy(merged.publishMany(rows()))).toMatchObject({
      name: 'PartialPublishError',
      code: 'HF_PARTIAL_PUBLISH',
      published: 4,
      failed: 2,
      stoppedAt: null,
      failures: [
        { index: 2, error: { code: 'HF_INVALID_INPUT' } },
        { index: 5, error: { message: 'torn' } },
      ],
    })
    expect(await world.counts()).toEqual({ ready: 4 })
  })

  test('stops reading where the store fails', async () => {
    const { hf, world, line } = alone({ timeout: '1s' })
    const merged = hf.event('pull_request.merged', data)
    await hf.subscribe({ name: 'a', to: merged, run }).subscribe()
    line.fail('enqueue', refused)
    const error = await world.run(thrownBy(merged.publishMany(numbers(100_000))))
    expect(error).toMatchObject({ code: 'HF_PARTIAL_PUBLISH', published: 0, stoppedAt: expect.any(Number) })
    expect((error as { stoppedAt: number }).stoppedAt).toBeLessThan(10_000)
  })

  /** So that a thousand events become ten flushes. */
  async function tenSubscribers(timeout: `${number}s`) {
    const process = alone({ timeout })
    const merged = process.hf.event('pull_request.merged', data)
    for (let n = 0; n < 10; n++) await process.hf.subscribe({ name: `s${n}`, to: merged, run }).subscribe()
    return { ...process, merged }
  }

  test('gives all calls for one batch one deadline if the store does not answer', async () => {
    const { line, world, merged } = await tenSubscribers('1s')
    const begunMs = world.nowMs
    line.fail('enqueue', requestLost)
    expect(await world.run(thrownBy(merged.publishMany(numbers(1_000))))).toMatchObject({ failed: 1_000 })
    expect(world.nowMs - begunMs).toBeLessThan(1_100)
  })

  test('takes its time as long as the store answers', async () => {
    const { line, world, merged } = await tenSubscribers('1s')
    line.fail('enqueue', async (perform) => {
      await busy(world.clock, 700)
      return perform()
    })
    expect(await world.run(merged.publishMany(numbers(1_000)))).toEqual({ published: 1_000, jobs: 10_000 })
  })

  test('publishes what is in a flush with an event of which the store refuses a value', async () => {
    const { hf, line, world } = alone()
    const merged = hf.event('pull_request.merged', data)
    await hf.subscribe({ name: 'a', to: merged, run }).subscribe()
    const refusal = new HoldfastError('HF_STORE_REFUSED', 'The database refused a value (SQLSTATE 22021).')
    line.fail(
      ({ method, args }) =>
        method === 'enqueue' &&
        (args[0] as Flush).jobs.some(({ payload }) => payload.includes('"number":7}')),
      () => Promise.reject(refusal),
    )
    expect(await thrownBy(merged.publishMany(numbers(2_000)))).toMatchObject({
      published: 1_999,
      failed: 1,
      stoppedAt: null,
      failures: [{ index: 7, error: refusal }],
    })
    expect(await world.counts()).toEqual({ ready: 1_999 })
  })
})
