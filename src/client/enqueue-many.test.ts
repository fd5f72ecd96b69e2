import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { PartialEnqueueError } from '../errors.ts'
import type { Flush } from '../stores/store.ts'
import {
  alone,
  deferred,
  letPromisesRun,
  refused,
  replyBroken,
  thrownBy,
  type Line,
} from '../../test/support/virtual.ts'

const run = (): void => undefined
const input = z.object({ n: z.number().max(1_000_000) })

function* numbers(count: number): Generator<{ n: number }> {
  for (let n = 0; n < count; n++) yield { n }
}

function flushSizes(line: Line): number[] {
  return line.callsTo('enqueue').map(({ args }) => (args[0] as Flush).jobs.length)
}

describe('job.enqueueMany', () => {
  test('gives back the ids of an array in the order of its inputs', async () => {
    const { hf, world } = alone()
    const job = hf.job({ name: 'many', input, run })
    const { ids, ...counts } = await job.enqueueMany([...numbers(2_500)])
    expect(counts).toEqual({ inserted: 2_500, duplicates: 0 })
    expect(ids).toHaveLength(2_500)
    for (const at of [0, 999, 1_000, 2_499]) {
      expect((await world.record(ids[at]!)).payload).toBe(`{"n":${at}}`)
    }
  })

  test('takes a generator', async () => {
    const { hf, world } = alone()
    const job = hf.job({ name: 'many', input, run })
    expect(await job.enqueueMany(numbers(1_234))).toEqual({ inserted: 1_234, duplicates: 0 })
    expect(await world.counts()).toEqual({ ready: 1_234 })
  })

  test('takes an asynchronous generator', async () => {
    const { hf, world } = alone()
    const job = hf.job({ name: 'many', input, run })
    const rows = async function* (): AsyncGenerator<{ n: number }> {
      for (const row of numbers(1_001)) {
        await Promise.resolve()
        yield row
      }
    }
    expect(await job.enqueueMany(rows())).toEqual({ inserted: 1_001, duplicates: 0 })
    expect(await world.counts()).toEqual({ ready: 1_001 })
  })

  test('takes nothing at all', async () => {
    const { hf, line } = alone()
    const job = hf.job({ name: 'many', input, run })
    expect(await job.enqueueMany([])).toEqual({ inserted: 0, duplicates: 0, ids: [] })
    expect(line.calls).toEqual([])
  })

  test('writes 10,000 jobs in ten calls', async () => {
    const { hf, line, world } = alone()
    const job = hf.job({ name: 'many', input, run })
    await job.enqueueMany(numbers(10_000))
    expect(flushSizes(line)).toEqual(Array.from({ length: 10 }, () => 1_000))
    expect(await world.counts()).toEqual({ ready: 10_000 })
  })

  test('has four calls in flight at most, and reads no further ahead than the next one', async () => {
    const { hf, line } = alone()
    const job = hf.job({ name: 'many', input, run })
    let inFlight = 0
    let most = 0
    let read = 0
    const gates = Array.from({ length: 10 }, () => deferred())
    let called = 0
    line.fail('enqueue', async (perform) => {
      most = Math.max(most, ++inFlight)
      await gates[called++]!.promise
      inFlight--
      return perform()
    })
    const counted = function* (): Generator<{ n: number }> {
      for (const row of numbers(10_000)) {
        read++
        yield row
      }
    }
    const done = job.enqueueMany(counted())
    for (const gate of gates) {
      await letPromisesRun()
      expect(read).toBeLessThanOrEqual(called * 1_000 + 1_000)
      gate.resolve()
    }
    expect(await done).toEqual({ inserted: 10_000, duplicates: 0 })
    expect(most).toBe(4)
  })

  test('applies the options to each, and counts the duplicates', async () => {
    const { hf, world } = alone()
    const job = hf.job({ name: 'many', input, unique: ({ n }) => ({ key: `${n % 3}` }), run })
    const { inserted, duplicates, ids } = await job.enqueueMany([...numbers(9)], { in: '1h' })
    expect({ inserted, duplicates }).toEqual({ inserted: 3, duplicates: 6 })
    expect(ids[8]).toBe(ids[2])
    expect(await world.counts()).toEqual({ scheduled: 3 })
  })

  test('repeats a flush whose answer was lost and writes it once', async () => {
    const { hf, line, world } = alone()
    const job = hf.job({ name: 'many', input, run })
    line.fail('enqueue', replyBroken, 2)
    expect(await world.run(job.enqueueMany(numbers(2_000)))).toEqual({ inserted: 2_000, duplicates: 0 })
    expect(await world.counts()).toEqual({ ready: 2_000 })
  })
})

describe('job.enqueueMany that cannot write all', () => {
  test('lists what was refused by index, and writes everything else', async () => {
    const { hf, world } = alone()
    const job = hf.job({ name: 'many', input, run })
    const inputs: { n: number }[] = [...numbers(3_000)]
    inputs[7] = { n: 'seven' as unknown as number }
    inputs[2_999] = { n: 2_000_000 }
    const error = await thrownBy(job.enqueueMany(inputs))
    expect(error).toBeInstanceOf(PartialEnqueueError)
    expect(error).toMatchObject({
      code: 'HF_PARTIAL_ENQUEUE',
      inserted: 2_998,
      duplicates: 0,
      failed: 2,
      failures: [
        { index: 7, error: { code: 'HF_INVALID_INPUT' } },
        { index: 2_999, error: { code: 'HF_INVALID_INPUT' } },
      ],
    })
    expect(await world.counts()).toEqual({ ready: 2_998 })
  })

  test('lists a flush that could not be written by its indexes, and writes the others', async () => {
    const { hf, line, world } = alone({ timeout: '2s' })
    const job = hf.job({ name: 'many', input, run })
    const second = ({ method, args }: { method: string; args: readonly unknown[] }): boolean =>
      method === 'enqueue' && (args[0] as Flush).jobs[0]?.payload === '{"n":1000}'
    line.fail(second, refused)
    const error = await world.run(thrownBy(job.enqueueMany(numbers(3_000))))
    expect(error).toMatchObject({ inserted: 2_000, failed: 1_000 })
    const { failures } = error as PartialEnqueueError
    expect(failures.map(({ index }) => index)).toEqual(Array.from({ length: 1_000 }, (_, n) => 1_000 + n))
    expect(failures[0]?.error).toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
    expect(await world.counts()).toEqual({ ready: 2_000 })
  })

  test('lists a thousand failures at most, and counts them all', async () => {
    const { hf } = alone()
    const job = hf.job({ name: 'many', input: z.string(), run })
    const error = await thrownBy(job.enqueueMany(numbers(1_500) as never))
    expect(error).toMatchObject({ failed: 1_500, inserted: 0, failures: { length: 1_000 } })
  })

  test.each(['synchronous', 'asynchronous'])(
    'writes what a %s source gave before it broke, and says where it broke',
    async (kind) => {
      const { hf, line, world } = alone()
      const job = hf.job({ name: 'many', input, run })
      const broken = new Error('cursor closed')
      const source =
        kind === 'synchronous'
          ? (function* () {
              yield* numbers(1_500)
              throw broken
            })()
          : (async function* () {
              yield* numbers(1_500)
              throw broken
            })()
      const gate = line.hold('enqueue', 'reply')
      const failing = thrownBy(job.enqueueMany(source))
      await letPromisesRun()
      gate.open()
      const error = await failing
      expect(error).toMatchObject({
        code: 'HF_PARTIAL_ENQUEUE',
        inserted: 1_500,
        failed: 1,
        failures: [{ index: 1_500, error: broken }],
        cause: broken,
      })
      expect(await world.counts()).toEqual({ ready: 1_500 })
      expect(world.clock.nextDueMs()).toBeUndefined()
    },
  )
})

describe('hf.enqueueMany', () => {
  test('writes different jobs in one step, with their options', async () => {
    const { hf, line, world } = alone()
    const mail = hf.job({ name: 'mail', input: z.object({ to: z.string() }), run })
    const tidy = hf.job({ name: 'tidy', run })
    const { inserted, ids } = await hf.enqueueMany([
      mail.with({ to: 'ada' }, { priority: 'high' }),
      tidy.with(),
      mail.with({ to: 'bob' }, { in: '1h' }),
    ])
    expect(inserted).toBe(3)
    expect(line.callsTo('enqueue')).toHaveLength(1)
    const records = await Promise.all(ids.map((id) => world.record(id)))
    expect(records.map(({ name, priority, state }) => [name, priority, state])).toEqual([
      ['mail', 7, 'ready'],
      ['tidy', 5, 'ready'],
      ['mail', 5, 'scheduled'],
    ])
  })

  test('writes nothing where one of them is refused', async () => {
    const { hf, line } = alone()
    const mail = hf.job({ name: 'mail', input: z.object({ to: z.string() }), run })
    const items = [mail.with({ to: 'ada' }), mail.with({ to: 1 as unknown as string })]
    await expect(hf.enqueueMany(items)).rejects.toMatchObject({ code: 'HF_INVALID_INPUT' })
    expect(line.calls).toEqual([])
  })

  test('refuses more than 1,000, and takes none', async () => {
    const { hf, line } = alone()
    const tidy = hf.job({ name: 'tidy', run })
    const items = Array.from({ length: 1_001 }, () => tidy.with())
    await expect(hf.enqueueMany(items)).rejects.toMatchObject({
      code: 'HF_BAD_OPTION',
      hint: expect.stringMatching(/enqueueMany/),
    })
    expect(await hf.enqueueMany([])).toEqual({ inserted: 0, ids: [] })
    expect(line.calls).toEqual([])
  })

  test('refuses a job that this holdfast() does not know', async () => {
    const { hf, world } = alone()
    const stranger = world.process().hf.job({ name: 'stranger', run })
    await expect(hf.enqueueMany([stranger.with()])).rejects.toMatchObject({ code: 'HF_UNKNOWN_JOB' })
  })
})
