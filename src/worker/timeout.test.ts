import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Aborted } from '../errors.ts'
import { alone, busy, deferred } from '../../test/support/virtual.ts'

describe('an attempt that runs longer than its timeout', () => {
  test('has its signal aborted with the reason "timeout", fails as timed out and is retried', async () => {
    const { hf, world, told, clock } = alone()
    const reasons: unknown[] = []
    const job = hf.job({
      name: 'slow',
      timeout: '30s',
      retry: { attempts: 2 },
      async run({ signal }) {
        await busy(clock, 60_000, signal).finally(() => reasons.push(signal.reason))
      },
    })
    const { id } = await job.enqueue()
    await hf.work()
    await world.advance(29_999)
    expect(reasons).toEqual([])
    await world.advance(1)
    expect(reasons[0]).toBeInstanceOf(Aborted)
    expect(reasons[0]).toMatchObject({ why: 'timeout', code: 'HF_ABORTED' })
    await world.until(() => told.of('job.failed').length === 2)
    expect(told.of('job.failed')[0]).toMatchObject({
      kind: 'timeout',
      final: false,
      durationMs: 30_000,
      error: { code: 'HF_ATTEMPT_TIMEOUT', message: expect.stringMatching(/"slow".*30s/) },
    })
    expect(await world.record(id)).toMatchObject({ state: 'dead', error: { kind: 'timeout' } })
    expect(told.of('job.stuck')).toEqual([])
  })

  test('is timed out whatever the handler throws once it was told to end', async () => {
    const { hf, world, told } = alone()
    const job = hf.job({
      name: 'cryptic',
      timeout: '1s',
      run: ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(new TypeError('socket hang up')))
        }),
    })
    await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.failed').length === 1)
    expect(told.of('job.failed')[0]?.kind).toBe('timeout')
  })

  test('is completed where the handler returns within its grace all the same', async () => {
    const { hf, world } = alone()
    const gate = deferred<string>()
    const handle = await hf.job({ name: 'nearly', timeout: '10s', run: () => gate.promise }).enqueue()
    await hf.work()
    await world.advance(14_000)
    gate.resolve('just in time')
    expect(await world.run(handle.result())).toBe('just in time')
  })

  test('takes the timeout of the enqueue, else of the definition, else five minutes', async () => {
    const { hf, world, told, clock } = alone()
    const run = ({ signal }: { signal: AbortSignal }): Promise<void> => busy(clock, 3_600_000, signal)
    const plain = hf.job({ name: 'plain', retry: { attempts: 1 }, run })
    const short = hf.job({ name: 'short', retry: { attempts: 1 }, timeout: '20s', run })
    await plain.enqueue()
    await short.enqueue()
    await short.enqueue(undefined, { timeout: '2s' })
    await hf.work()
    await world.until(() => told.of('job.failed').length === 3)
    expect(told.of('job.failed').map(({ job, durationMs }) => [job, durationMs])).toEqual([
      ['short', 2_000],
      ['short', 20_000],
      ['plain', 300_000],
    ])
  })

  test('strikes each attempt at its own time, whatever order they started in', async () => {
    const { hf, world, told, clock } = alone()
    const job = hf.job({
      name: 'job',
      input: z.number(),
      retry: { attempts: 1 },
      run: ({ signal }) => busy(clock, 3_600_000, signal),
    })
    await hf.work({ concurrency: 50 })
    const timeouts = [9_000, 3_000, 7_000, 1_000, 1_000, 8_000, 2_000]
    for (const timeout of timeouts) {
      await job.enqueue(timeout, { timeout })
      await world.advance(100)
    }
    await world.until(() => told.of('job.failed').length === timeouts.length)
    expect(told.of('job.failed').map((event) => event.durationMs)).toEqual(
      told.of('job.failed').map((event) => {
        const at = told.of('job.started').findIndex((started) => started.id === event.id)
        return timeouts[at]
      }),
    )
  })
})

describe('a handler that ignores its timeout', () => {
  const ignoring = async () => {
    const setting = alone()
    const { hf, world } = setting
    const gate = deferred<string>()
    const job = hf.job({
      name: 'deaf',
      input: z.string(),
      timeout: '10s',
      retry: { attempts: 1 },
      run: ({ input }) => (input === 'deaf' ? gate.promise : input),
    })
    const deaf = await job.enqueue('deaf')
    const worker = await hf.work({ concurrency: 1 })
    await world.advance(1_000)
    const next = await job.enqueue('next')
    return { ...setting, gate, deaf, next, worker }
  }

  test('is given up after five seconds: told as stuck, and its outcome is written', async () => {
    const { world, told, deaf, gate } = await ignoring()
    await world.advance(13_900)
    expect(told.of('job.stuck')).toEqual([])
    await world.advance(200)
    expect(told.of('job.stuck')).toMatchObject([{ id: deaf.id, job: 'deaf', why: 'timeout' }])
    expect(await world.record(deaf.id)).toMatchObject({ state: 'dead', error: { kind: 'timeout' } })
    gate.resolve('late')
  })

  test('keeps its slot until it returns, and only then does the next job start', async () => {
    const { world, told, gate, next, worker } = await ignoring()
    await world.advance(120_000)
    expect(worker.health()).toMatchObject({ running: 1, healthy: true })
    expect(await next.state()).toBe('ready')
    gate.resolve('late')
    await world.advance(10)
    expect(told.about(next.id)).toContain('job.completed')
  })

  test('has its late result ignored', async () => {
    const { world, told, deaf, gate } = await ignoring()
    await world.advance(60_000)
    gate.resolve('late')
    await world.advance(1_000)
    expect(await deaf.state()).toBe('dead')
    expect(told.about(deaf.id)).toEqual(['job.enqueued', 'job.started', 'job.stuck', 'job.failed'])
  })

  test('has its late error ignored', async () => {
    const { world, told, deaf, gate } = await ignoring()
    await world.advance(60_000)
    gate.reject(new Error('late'))
    await world.advance(1_000)
    expect(told.of('job.failed')).toHaveLength(1)
    expect(told.about(deaf.id)).not.toContain('job.unhandled')
  })
})
