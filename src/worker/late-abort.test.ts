/** Attempts that are aborted on their way to the handler, while an async schema or a middleware takes its time. */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { alone, deferred } from '../../test/support/virtual.ts'

const WAYS = ['an async schema', 'a middleware', 'the async schema of a batch job'] as const

/** A job that a worker has started, and whose handler waits at a gate for its input or its middleware. */
async function atTheGate(way: (typeof WAYS)[number]) {
  const parts = alone()
  const { hf, world, told } = parts
  const gate = deferred()
  const ran: unknown[] = []
  const wait = (): Promise<boolean> => gate.promise.then(() => true)
  const settings = { name: 'job', timeout: '10s' } as const
  const run = (): void => void ran.push(way)
  const input = z.number().refine(wait)
  if (way === 'an async schema') hf.job({ ...settings, input, run })
  else if (way === 'a middleware')
    hf.use(async ({ next }) => {
      await wait()
      return next()
    }).job({ ...settings, input: z.number(), run })
  else hf.batchJob({ ...settings, input, batch: { size: 1 }, run })
  const other = world.process().hf
  // Without the schema, which would wait here as well.
  const handle = await other
    .contract({ name: 'job', input: z.number() })
    .enqueue(1, { retry: { attempts: 1 } })
  const worker = await hf.work()
  await world.until(() => told.of('job.started').length === 1)
  return { ...parts, worker, handle, gate, ran }
}

describe.each(WAYS)('an attempt behind %s', (way) => {
  test('does not start its handler after it was cancelled', async () => {
    const { world, handle, gate, ran } = await atTheGate(way)
    expect(await world.run(handle.cancel('no'))).toBe('requested')
    gate.resolve()
    await world.advance(100)
    expect(ran).toEqual([])
    expect(await world.record(handle.id)).toMatchObject({ state: 'cancelled', reason: 'no' })
  })

  test('does not start its handler after its timeout', async () => {
    const { world, handle, gate, ran } = await atTheGate(way)
    await world.advance(10_001)
    gate.resolve()
    await world.advance(100)
    expect(ran).toEqual([])
    expect(await world.record(handle.id)).toMatchObject({
      state: 'dead',
      error: { code: 'HF_ATTEMPT_TIMEOUT' },
    })
  })

  test('does not start its handler once the worker gave up waiting to shut down', async () => {
    const { worker, world, handle, gate, ran } = await atTheGate(way)
    const stopping = worker.stop({ drain: 0 })
    await world.advance(1)
    gate.resolve()
    await world.run(stopping)
    expect(ran).toEqual([])
    expect(await world.record(handle.id)).toMatchObject({ state: 'ready', attempt: 0 })
  })
})
