import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { WorkerId } from '../job/ids.ts'
import type { CycleRequest, HeartbeatRequest } from '../stores/store.ts'
import {
  alone,
  busy,
  deferred,
  refused,
  replyLost,
  VirtualWorld,
  type Call,
  type Deferred,
  type Process,
} from '../../test/support/virtual.ts'

const claims = ({ method, args }: Call): boolean =>
  method === 'cycle' && (args[0] as CycleRequest).claim !== null

/** Two processes that run the same job: each waits for its own gate and answers with its own name. */
async function pair() {
  const world = new VirtualWorld()
  const gates: Deferred<void>[] = []
  const signals: AbortSignal[] = []
  const work = async (name: string): Promise<Process<'default'> & { id: () => string }> => {
    const process = world.process()
    process.hf.job({
      name: 'job',
      input: z.number(),
      async run({ signal }) {
        const gate = deferred()
        gates.push(gate)
        signals.push(signal)
        await gate.promise
        return name
      },
    })
    const worker = await process.hf.work({ concurrency: 2 })
    return { ...process, id: () => worker.id }
  }
  const first = await work('first')
  const client = world.process().hf.contract({ name: 'job', input: z.number() })
  const { id } = await client.enqueue(1)
  await world.advance(10)
  const second = await work('second')
  return { world, first, second, id, client, gates, signals }
}

describe('a worker that lost its lease', () => {
  /** The first process is cut off for longer than its lease; the second has taken its job over. */
  const cutOff = async () => {
    const setting = await pair()
    const { world, first, second } = setting
    const before = first.id()
    first.line.breakDown()
    await world.until(() => second.told.of('job.started').length === 1)
    return { ...setting, before }
  }

  test('aborts the handler with "lease_lost" as soon as it learns of it', async () => {
    const { world, first, signals, gates } = await cutOff()
    expect(signals[0]?.aborted).toBe(false)
    first.line.mend()
    await world.until(() => signals[0]!.aborted, 5_000)
    expect(signals[0]?.reason).toMatchObject({ why: 'lease_lost' })
    expect(signals[1]?.aborted).toBe(false)
    gates.forEach((gate) => gate.resolve())
  })

  test('does not overwrite the result of the new owner', async () => {
    const { world, first, second, id, gates } = await cutOff()
    gates[1]!.resolve()
    await world.until(() => second.told.of('job.completed').length === 1)
    gates[0]!.resolve()
    first.line.mend()
    await world.until(() => first.told.of('job.lost').length === 1)
    expect(await world.record(id)).toMatchObject({ state: 'completed', result: '"second"' })
    expect(first.told.about(id)).toEqual(['job.started', 'job.lost'])
  })

  test('writes nothing while the new owner is still at work', async () => {
    const { world, first, second, id, gates } = await cutOff()
    gates[0]!.resolve()
    first.line.mend()
    await world.advance(20_000)
    expect(await world.record(id)).toMatchObject({ state: 'running', worker: second.id() })
    gates[1]!.resolve()
    await world.until(() => second.told.of('job.completed').length === 1)
    expect(first.told.of('job.completed')).toEqual([])
  })

  test('comes back under a new id and goes on claiming', async () => {
    const { world, first, before, client, gates } = await cutOff()
    first.line.mend()
    await world.until(() => first.told.of('worker.reregistered').length === 1, 5_000)
    expect(first.id()).not.toBe(before)
    expect(first.told.of('worker.reregistered')).toEqual([{ worker: first.id(), before, abandoned: 1 }])
    gates.forEach((gate) => gate.resolve())
    await world.advance(1_000)
    const { ids } = await client.enqueueMany([2, 3, 4, 5])
    await world.advance(100)
    expect(first.told.of('job.started').filter((event) => ids.includes(event.id)).length).toBeGreaterThan(0)
    gates.forEach((gate) => gate.resolve())
  })

  test('keeps the slot of a handler that goes on, and tells of it as stuck', async () => {
    const { world, first, gates } = await cutOff()
    first.line.mend()
    await world.until(() => first.told.of('worker.reregistered').length === 1)
    await world.advance(6_000)
    expect(first.told.of('job.stuck')).toMatchObject([{ why: 'lease_lost' }])
    const { id } = first.told.of('job.stuck')[0]!
    expect(first.told.about(id)).toEqual(['job.started', 'job.lost', 'job.stuck'])
    gates.forEach((gate) => gate.resolve())
  })

  test('begins anew once, however long its new registration takes', async () => {
    const { world, first, gates } = await cutOff()
    first.line.mend()
    first.line.fail('register', refused, 40)
    await world.until(() => first.told.of('worker.reregistered').length === 1)
    await world.advance(60_000)
    expect(first.told.of('worker.reregistered')).toHaveLength(1)
    const registered = first.line.callsTo('register').map(({ args }) => args[0])
    expect(new Set(registered.slice(1)).size).toBe(1)
    const beat = await world.store.heartbeat({ worker: first.id() as WorkerId, undelivered: [] })
    expect(beat.alive).toBe(true)
    gates.forEach((gate) => gate.resolve())
  })

  test('can be stopped while it tries to come back', async () => {
    const { world, first, gates } = await cutOff()
    first.line.mend()
    first.line.fail('register', refused)
    await world.until(() => first.told.of('worker.reregistered').length === 1)
    gates.forEach((gate) => gate.resolve())
    await world.run(first.hf.close())
    expect(first.told.of('worker.stopped')).toHaveLength(1)
  })
})

describe('a worker whose incarnation is gone', () => {
  test('takes no for no answer: "gone" differs from "empty", and it claims again at once', async () => {
    const { hf, world, told } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    const worker = await hf.work({ poll: '1h' })
    await world.advance(1_000)
    await world.store.retire(worker.id as WorkerId)
    await job.enqueue()
    await world.advance(10)
    expect(told.of('worker.reregistered')).toHaveLength(1)
    expect(told.of('job.completed')).toHaveLength(1)
  })
})

describe('a process that was frozen for several leases', () => {
  const freeze = async () => {
    const setting = await pair()
    const { world, first, second } = setting
    first.freeze()
    await world.until(() => second.told.of('job.started').length === 1)
    return setting
  }

  test('does not settle over the new owner when it thaws', async () => {
    const { world, first, second, id, gates } = await freeze()
    await world.advance(60_000)
    gates[0]!.resolve()
    first.thaw()
    await world.advance(1_000)
    expect(first.told.of('job.lost')).toHaveLength(1)
    expect(first.told.of('worker.reregistered')).toHaveLength(1)
    expect(await world.record(id)).toMatchObject({ state: 'running', worker: second.id() })
    gates[1]!.resolve()
    await world.until(() => second.told.of('job.completed').length === 1)
    expect(await world.record(id)).toMatchObject({ result: '"second"' })
  })

  test('asks for its lease before it settles anything', async () => {
    const { world, first, gates } = await freeze()
    await world.advance(60_000)
    gates[0]!.resolve()
    const before = first.line.calls.length
    first.thaw()
    await world.advance(1_000)
    const since = first.line.calls.slice(before).map(({ method }) => method)
    expect(since.indexOf('heartbeat')).toBeGreaterThanOrEqual(0)
    expect(since.indexOf('heartbeat')).toBeLessThan(since.indexOf('cycle'))
    gates[1]!.resolve()
  })

  test('starts nothing of a claim whose answer it reads too late: it is given back and run afresh', async () => {
    const { hf, world, told, line, freeze: stopTime, thaw } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    await hf.work()
    await world.advance(1_000)
    const gate = line.hold(claims, 'reply')
    const { id } = await job.enqueue()
    await world.advance(10)
    expect(await world.record(id)).toMatchObject({ state: 'running' })
    stopTime()
    gate.open()
    await world.advance(70_000)
    thaw()
    await world.advance(1_000)
    expect(told.of('job.started')).toEqual([])
    await world.until(() => told.of('job.completed').length === 1, 60_000)
    expect(told.of('job.completed')[0]).toMatchObject({ id, attempt: 1 })
    expect(await world.record(id)).toMatchObject({ crashes: 0 })
  })
})

describe('a worker that lost one lease of several', () => {
  test('learns of it by a heartbeat, aborts what ran under it, and goes on with the rest', async () => {
    const { hf, world, told, clock } = alone()
    const signals = new Map<string, AbortSignal>()
    const job = hf.job({
      name: 'job',
      run({ signal, job: { id, attempt } }) {
        signals.set(`${id} ${attempt} ${signals.size}`, signal)
        return busy(clock, 15_000, signal)
      },
    })
    const worker = await hf.work()
    const kept = await job.enqueue()
    await world.advance(10)
    const lost = await job.enqueue()
    await world.advance(10)
    const record = await world.record(lost.id)
    if (record.state !== 'running') throw new Error('it does not run')
    await world.store.heartbeat({ worker: record.worker, undelivered: [record.token] })
    await world.until(() => told.of('job.lost').length === 1, 10_000)
    expect(told.of('job.lost')).toMatchObject([{ id: lost.id }])
    expect([...signals.values()].map((signal) => signal.aborted)).toEqual([false, true, false])
    await world.until(() => told.of('job.completed').length === 2)
    expect(told.about(kept.id)).toEqual(['job.enqueued', 'job.started', 'job.completed'])
    expect(worker.id).toBe(record.worker)
  })
})

describe('a worker that is not sure of its lease', () => {
  test('counts its lease from when the heartbeat was sent, not from when its answer came', async () => {
    const { hf, world, line } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    await hf.work()
    const gate = line.hold('heartbeat', 'reply')
    await world.until(() => gate.held() === 1)
    const sentMs = world.nowMs
    await world.advance(2_500)
    gate.open()
    line.fail('heartbeat', refused)
    await world.advance(sentMs + 28_500 - world.nowMs)
    const before = line.calls.filter(claims).length
    await job.enqueue()
    await world.advance(1_000)
    expect(line.calls.filter(claims)).toHaveLength(before)
    line.mend()
  })

  test('claims and starts nothing while its heartbeats fail, and goes on when they arrive again', async () => {
    const { hf, world, told, line } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    await hf.work()
    await world.advance(1_000)
    line.fail('heartbeat', refused)
    await world.advance(29_000)
    await job.enqueue()
    const before = line.calls.filter(claims).length
    await world.advance(20_000)
    expect(line.calls.filter(claims)).toHaveLength(before)
    expect(told.of('job.started')).toEqual([])
    line.mend()
    await world.until(() => told.of('job.completed').length === 1, 5_000)
  })

  test('starts nothing of a claim that it was sure of when it asked, but no longer is', async () => {
    const { hf, world, told, line } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    await hf.work({ poll: '1h' })
    await world.advance(1_000)
    line.fail('heartbeat', refused)
    await world.advance(26_000)
    const gate = line.hold(claims, 'reply')
    const { id } = await job.enqueue()
    await world.advance(2_000)
    gate.open()
    await world.advance(10)
    expect(await world.record(id)).toMatchObject({ state: 'running' })
    expect(told.of('job.started')).toEqual([])
    line.mend()
    await world.until(() => told.of('job.completed').length === 1, 5_000)
    expect(told.of('job.released')).toMatchObject([{ id, attempt: 1 }])
    expect(told.of('job.completed')).toMatchObject([{ id, attempt: 1 }])
  })
})

describe('a claim whose answer was lost', () => {
  test('is released by a heartbeat once it cannot come any more, and run: no attempt and no crash counted', async () => {
    const { hf, world, told, line } = alone()
    const seen: unknown[] = []
    const job = hf.job({
      name: 'job',
      run: ({ job: { attempt, crashes } }) => void seen.push({ attempt, crashes }),
    })
    await hf.work()
    await world.advance(1_000)
    line.fail(claims, replyLost, 1)
    const { id } = await job.enqueue()
    await world.advance(1_000)
    expect(await world.record(id)).toMatchObject({ state: 'running' })
    const tookMs = await world.until(() => told.of('job.completed').length === 1)
    expect(tookMs).toBeGreaterThan(10_000)
    expect(tookMs).toBeLessThan(45_000)
    expect(seen).toEqual([{ attempt: 1, crashes: 0 }])
    expect(told.of('worker.reregistered')).toEqual([])
  })

  test('is not mistaken for one whose answer was only late', async () => {
    const { hf, world, told, line, clock } = alone()
    let runs = 0
    const job = hf.job({
      name: 'job',
      async run() {
        runs++
        await busy(clock, 40_000)
      },
    })
    await hf.work()
    await world.advance(9_000)
    const gate = line.hold(claims, 'reply')
    await job.enqueue()
    await world.advance(2_500)
    // A heartbeat has seen the lease by now, and the claim is answered only afterwards.
    expect(line.callsTo('heartbeat')).toHaveLength(1)
    gate.open()
    await world.advance(100)
    expect(told.of('job.started')).toHaveLength(1)
    // The next heartbeat that arrives comes later than any claim may take.
    line.fail('heartbeat', refused)
    await world.advance(15_000)
    line.mend()
    await world.until(() => told.of('job.completed').length === 1)
    const released = line
      .callsTo('heartbeat')
      .flatMap(({ args }) => (args[0] as HeartbeatRequest).undelivered)
    expect(released).toEqual([])
    expect(runs).toBe(1)
  })
})
