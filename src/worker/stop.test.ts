import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { WorkerId } from '../job/ids.ts'
import type { CycleRequest } from '../stores/store.ts'
import { alone, busy, deferred, letPromisesRun } from '../../test/support/virtual.ts'

describe('stopping a worker', () => {
  test('takes no new jobs, lets the running ones finish, and writes what they came to', async () => {
    const { hf, world, told, clock } = alone()
    const job = hf.job({ name: 'job', input: z.number(), run: () => busy(clock, 10_000) })
    const worker = await hf.work({ concurrency: 2 })
    await job.enqueueMany([1, 2, 3])
    await world.advance(1_000)
    const stopping = worker.stop()
    await job.enqueue(4)
    expect(worker.health()).toMatchObject({ stopping: true, healthy: false, running: 2 })
    await world.run(stopping)
    expect(world.nowMs).toBe(10_000)
    expect(await world.counts()).toEqual({ completed: 2, ready: 2 })
    expect(told.of('worker.stopping')).toEqual([{ worker: worker.id, running: 2 }])
    expect(told.of('worker.stopped')).toEqual([{ worker: worker.id, released: 0 }])
  })

  test('leaves nothing behind: no incarnation, no lease, no timer', async () => {
    const { hf, world } = alone()
    hf.job({ name: 'job', run: () => undefined })
    const worker = await hf.work()
    await world.advance(30_000)
    await world.run(worker.stop())
    expect(world.clock.nextDueMs()).toBeUndefined()
    const beat = await world.store.heartbeat({ worker: worker.id as WorkerId, undelivered: [] })
    expect(beat.alive).toBe(false)
  })

  test('gives back at once what was claimed but not started, and no attempt is used', async () => {
    const { hf, world, told, clock } = alone()
    const gate = deferred()
    const job = hf.job({
      name: 'job',
      input: z.number(),
      run: ({ input }) => (input < 300 ? busy(clock, 1) : gate.promise),
    })
    const { ids } = await job.enqueueMany(Array.from({ length: 320 }, (_, n) => n))
    const worker = await hf.work({ concurrency: 1 })
    await world.until(() => told.of('job.started').length === 301)
    const { waiting } = worker.health()
    expect(waiting).toBeGreaterThan(5)
    const stopping = worker.stop()
    await world.advance(10)
    expect(await world.record(ids[305]!)).toMatchObject({ state: 'ready', attempt: 0 })
    gate.resolve()
    await world.run(stopping)
    expect(told.of('worker.stopped')[0]?.released).toBe(waiting)
    expect(await world.counts()).toEqual({ completed: 301, ready: 19 })
  })

  test('gives back what a claim brings that was under way', async () => {
    const { hf, world, line, told } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    const worker = await hf.work()
    await world.advance(1_000)
    const claiming = line.hold(
      ({ method, args }) => method === 'cycle' && (args[0] as CycleRequest).claim !== null,
      'reply',
    )
    const { id } = await job.enqueue()
    await world.advance(10)
    expect(await world.record(id)).toMatchObject({ state: 'running' })
    const stopping = worker.stop()
    await letPromisesRun()
    claiming.open()
    await world.run(stopping)
    expect(told.of('job.started')).toEqual([])
    expect(await world.record(id)).toMatchObject({ state: 'ready', attempt: 0 })
  })

  test('is the same stop, however often and by whatever means it is asked for', async () => {
    const { hf, world, told } = alone()
    hf.job({ name: 'job', run: () => undefined })
    const worker = await hf.work()
    await world.run(Promise.all([worker.stop(), worker.stop(), worker[Symbol.asyncDispose](), hf.close()]))
    await worker.stop()
    expect(told.of('worker.stopped')).toHaveLength(1)
  })

  test('can be asked for by a signal, also one that was aborted before', async () => {
    const { hf, world, told } = alone()
    hf.job({ name: 'job', run: () => undefined })
    const abort = new AbortController()
    await hf.work({ signal: abort.signal })
    await hf.work({ signal: AbortSignal.abort() })
    await world.until(() => told.of('worker.stopped').length === 1)
    abort.abort()
    await world.until(() => told.of('worker.stopped').length === 2)
    await world.advance(60_000)
    expect(world.clock.nextDueMs()).toBeUndefined()
  })

  test('leaves the other workers of the process at work', async () => {
    const { hf, world, told } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    const one = await hf.work()
    const two = await hf.work()
    await world.run(one.stop())
    await job.enqueue(undefined, { in: '10s' })
    await world.until(() => told.of('job.completed').length === 1)
    expect(told.of('job.completed')[0]?.worker).toBe(two.id)
  })

  test('refuses a drain that is no duration', async () => {
    const { hf } = alone()
    hf.job({ name: 'job', run: () => undefined })
    const worker = await hf.work()
    await expect(worker.stop({ drain: 'soon' as '1s' })).rejects.toMatchObject({ code: 'HF_BAD_OPTION' })
  })
})

describe('a job that outlasts the drain', () => {
  test('has its signal aborted with "shutdown" and is given back without using an attempt', async () => {
    const { hf, world, told, clock } = alone()
    const reasons: unknown[] = []
    const job = hf.job({
      name: 'long',
      run: ({ signal }) => busy(clock, 600_000, signal).finally(() => reasons.push(signal.reason)),
    })
    const { id } = await job.enqueue()
    const worker = await hf.work()
    await world.advance(1_000)
    await world.run(worker.stop({ drain: '20s' }))
    expect(world.nowMs).toBe(21_000)
    expect(reasons).toMatchObject([{ why: 'shutdown' }])
    expect(await world.record(id)).toMatchObject({ state: 'ready', attempt: 0, crashes: 0 })
    expect(told.about(id)).toEqual(['job.enqueued', 'job.started', 'job.released'])
    expect(told.of('worker.stopped')[0]?.released).toBe(1)
  })

  test('has its five seconds to clean up, although its timeout ends a moment later', async () => {
    const { hf, world, told, clock } = alone()
    const job = hf.job({
      name: 'long',
      timeout: '30s',
      async run({ signal }) {
        await busy(clock, 60_000, signal).catch(() => undefined)
        await busy(clock, 4_000)
        signal.throwIfAborted()
      },
    })
    const { id } = await job.enqueue()
    const worker = await hf.work()
    await world.advance(100)
    await world.run(worker.stop({ drain: 29_800 }))
    expect(world.nowMs).toBe(33_900)
    expect(told.of('job.stuck')).toEqual([])
    expect(told.about(id)).toEqual(['job.enqueued', 'job.started', 'job.released'])
  })

  test('that was timed out before keeps the time that it was given then', async () => {
    const { hf, world, told } = alone()
    const gate = deferred()
    const job = hf.job({ name: 'deaf', timeout: '10s', run: () => gate.promise })
    await job.enqueue()
    const worker = await hf.work()
    await world.until(() => told.of('job.started').length === 1)
    const startedMs = world.nowMs
    const stopping = worker.stop({ drain: '12s' })
    await world.until(() => told.of('job.stuck').length === 1)
    expect(world.nowMs - startedMs).toBe(15_000)
    gate.resolve()
    await world.run(stopping)
    expect(told.of('job.failed')).toMatchObject([{ kind: 'timeout' }])
    expect(told.of('job.stuck')).toMatchObject([{ why: 'timeout' }])
  })

  test('is told as stuck once, if it ignores the stop', async () => {
    const { hf, world, told } = alone()
    const gate = deferred()
    const job = hf.job({ name: 'deaf', timeout: '1h', run: () => gate.promise })
    await job.enqueue()
    const worker = await hf.work()
    await world.advance(1_000)
    await world.run(worker.stop({ drain: '10s' }))
    await world.advance(10_000)
    expect(told.of('job.stuck')).toMatchObject([{ why: 'shutdown' }])
    gate.resolve()
  })

  test('has 30 seconds unless told, or the grace of its worker', async () => {
    const { hf, world, clock } = alone()
    const job = hf.job({ name: 'long', run: ({ signal }) => busy(clock, 600_000, signal) })
    await job.enqueue()
    await job.enqueue()
    const patient = await hf.work({ concurrency: 1 })
    const hasty = await hf.work({ concurrency: 1, grace: '3s' })
    await world.advance(1_000)
    await world.run(hasty.stop())
    expect(world.nowMs).toBe(4_000)
    await world.run(patient.stop())
    expect(world.nowMs).toBe(34_000)
  })

  test('is run by the next worker, as its first attempt', async () => {
    const { hf, world, clock } = alone()
    const attempts: number[] = []
    const define = (on: typeof hf, ms: number) =>
      on.job({
        name: 'long',
        async run({ job: { attempt }, signal }) {
          attempts.push(attempt)
          await busy(clock, ms, signal)
        },
      })
    const handle = await define(hf, 600_000).enqueue()
    const worker = await hf.work()
    await world.advance(1_000)
    await world.run(worker.stop({ drain: 0 }))
    const next = world.process()
    define(next.hf, 10)
    await next.hf.work()
    await world.run(handle.result())
    expect(attempts).toEqual([1, 1])
  })

  test('that ignores the signal is told as stuck and given back after five seconds', async () => {
    const { hf, world, told } = alone()
    const gate = deferred<string>()
    const handle = await hf.job({ name: 'deaf', run: () => gate.promise }).enqueue()
    const worker = await hf.work()
    await world.advance(1_000)
    await world.run(worker.stop({ drain: '10s' }))
    expect(world.nowMs).toBe(16_000)
    expect(told.of('job.stuck')).toMatchObject([{ id: handle.id, why: 'shutdown' }])
    expect(await world.record(handle.id)).toMatchObject({ state: 'ready', attempt: 0 })
    gate.resolve('late')
    await world.advance(1_000)
    expect(await handle.state()).toBe('ready')
  })

  test('that finishes its work after the abort is completed', async () => {
    const { hf, world } = alone()
    const gate = deferred<string>()
    const handle = await hf.job({ name: 'tidy', run: () => gate.promise }).enqueue()
    const worker = await hf.work()
    await world.advance(1_000)
    const stopping = worker.stop({ drain: '10s' })
    await world.advance(12_000)
    gate.resolve('saved')
    await world.run(stopping)
    expect(await handle.result()).toBe('saved')
  })

  test('and had timed out before, counts as timed out: no job lives on by restarts', async () => {
    const { hf, world } = alone()
    const gate = deferred()
    const job = hf.job({ name: 'deaf', timeout: '10s', retry: { attempts: 1 }, run: () => gate.promise })
    const handle = await job.enqueue()
    const worker = await hf.work({ grace: '1s' })
    await world.advance(11_000)
    await world.run(worker.stop({ drain: 0 }))
    expect(await world.record(handle.id)).toMatchObject({ state: 'dead', error: { kind: 'timeout' } })
    gate.resolve()
  })
})

describe('a second stop', () => {
  test('with less time hurries the first', async () => {
    const { hf, world, clock } = alone()
    const job = hf.job({ name: 'long', run: ({ signal }) => busy(clock, 600_000, signal) })
    await job.enqueue()
    const worker = await hf.work()
    await world.advance(1_000)
    const first = worker.stop({ drain: '1h' })
    await world.advance(5_000)
    await world.run(worker.stop({ drain: 0 }))
    await first
    expect(world.nowMs).toBe(6_000)
    expect(await world.counts()).toEqual({ ready: 1 })
  })

  test('with more time changes nothing', async () => {
    const { hf, world, clock } = alone()
    const job = hf.job({ name: 'long', run: ({ signal }) => busy(clock, 600_000, signal) })
    await job.enqueue()
    const worker = await hf.work()
    await world.advance(1_000)
    const first = worker.stop({ drain: '5s' })
    await world.run(Promise.all([first, worker.stop({ drain: '1h' })]))
    expect(world.nowMs).toBe(6_000)
  })
})
