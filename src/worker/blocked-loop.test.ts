import { describe, expect, test } from 'vitest'
import type { Pulse, Store } from '../stores/store.ts'
import { alone, busy, deferred, refused } from '../../test/support/virtual.ts'

const LEASE_MS = 30_000

/** What a store's thread would have of one worker. */
class Heard implements Pulse {
  readonly worker: string
  sentMs = -Infinity
  alive = true
  turns = 0
  patienceMs: number
  readonly running: string[] = []
  stopped = false

  constructor(worker: string, leaseMs: number) {
    this.worker = worker
    this.patienceMs = leaseMs
  }

  turned(): void {
    this.turns++
  }

  setPatience(ms: number): void {
    this.patienceMs = ms
  }

  started(name: string): void {
    this.running.push(name)
  }

  ended(name: string): void {
    this.running.splice(this.running.indexOf(name), 1)
  }

  stop(): void {
    this.stopped = true
  }
}

function setUp() {
  const pulses: Heard[] = []
  const keepAlive: Store['keepAlive'] = (worker, leaseMs) => {
    const pulse = new Heard(worker, leaseMs)
    pulses.push(pulse)
    return pulse
  }
  return { pulses, ...alone({}, { keepAlive }) }
}

describe('the pulse of a worker', () => {
  test('begins when the store knows the worker, and ends with it', async () => {
    const { hf, world, pulses, line } = setUp()
    hf.job({ name: 'job', run: () => undefined })
    const gate = line.hold('register')
    const working = hf.work()
    await world.advance(10)
    expect(pulses).toEqual([])
    gate.open()
    const worker = await world.run(working)
    expect(pulses).toMatchObject([{ worker: worker.id, stopped: false }])
    await world.run(worker.stop())
    expect(pulses).toMatchObject([{ stopped: true }])
  })

  test('is told of few turns while nothing runs, and of many from the start of a job on', async () => {
    const { hf, world, pulses } = setUp()
    const gate = deferred()
    const job = hf.job({ name: 'job', run: () => gate.promise })
    const worker = await hf.work({ lease: LEASE_MS })
    const [pulse] = pulses as [Heard]
    const turnsOf = async (ms: number): Promise<number> => {
      const { turns } = pulse
      await world.advance(ms)
      return pulse.turns - turns
    }
    expect(await turnsOf(10_000)).toBeLessThanOrEqual(10)
    await job.enqueue()
    await world.advance(250)
    expect(pulse.running).toEqual(['job'])
    expect(await turnsOf(10_000)).toBeGreaterThanOrEqual(45)
    gate.resolve()
    await world.run(worker.stop())
  })

  test('is told of each turn of the loop, several times a lease, and not when it stands still', async () => {
    const { hf, world, pulses, freeze, thaw } = setUp()
    hf.job({ name: 'job', run: () => undefined })
    await hf.work({ lease: '1s' })
    const [pulse] = pulses as [Heard]
    await world.advance(1_000)
    const { turns } = pulse
    expect(turns).toBeGreaterThanOrEqual(10)
    freeze()
    await world.advance(5_000)
    expect(pulse.turns).toBe(turns)
    thaw()
    await world.advance(1_000)
    expect(pulse.turns).toBeGreaterThanOrEqual(turns + 10)
  })

  test('has patience for ten leases, and for as long as a running job may take', async () => {
    const { hf, world, pulses, clock } = setUp()
    const job = hf.job({ name: 'job', timeout: '1h', run: () => busy(clock, 60_000) })
    await hf.work()
    const [pulse] = pulses as [Heard]
    expect(pulse.patienceMs).toBe(10 * LEASE_MS)
    await job.enqueue()
    await world.until(() => pulse.running.length === 1)
    expect(pulse.patienceMs).toBe(3_600_000)
    await world.until(() => pulse.running.length === 0)
    await world.advance(200)
    expect(pulse.patienceMs).toBe(10 * LEASE_MS)
  })

  test('has none while the heartbeats of the worker itself are not answered for as long', async () => {
    const { hf, world, pulses, line } = setUp()
    hf.job({ name: 'job', run: () => undefined })
    await hf.work()
    const [pulse] = pulses as [Heard]
    line.fail(['heartbeat', 'upkeep.rescue'], refused)
    await world.advance(9 * LEASE_MS)
    expect(pulse.patienceMs).toBe(10 * LEASE_MS)
    await world.advance(2 * LEASE_MS)
    expect(pulse.patienceMs).toBe(0)
    line.mend()
    await world.until(() => pulse.patienceMs === 10 * LEASE_MS, 10_000)
  })

  test('knows by name what runs, of messages taken by hand as well', async () => {
    const { hf, world, pulses } = setUp()
    const gate = deferred()
    const job = hf.job({ name: 'job', run: () => gate.promise })
    await hf.work()
    await Promise.all([job.enqueue(), job.enqueue()])
    await world.until(() => pulses[0]!.running.length === 2)
    expect(pulses[0]!.running).toEqual(['job', 'job'])
    gate.resolve()
    await world.until(() => pulses[0]!.running.length === 0)

    await world.run(hf.close())
    const other = setUp()
    const queue = other.hf.queue('default')
    await queue.send(1, { name: 'letter' })
    const [message] = await other.world.run(queue.get())
    expect(other.pulses[0]!.running).toEqual(['letter'])
    await other.world.run(message!.ack())
    expect(other.pulses[0]!.running).toEqual([])
  })

  test('of a worker that lost its lease ends; its next life has one of its own', async () => {
    const { hf, world, pulses, told, clock, line } = setUp()
    const job = hf.job({ name: 'job', run: () => busy(clock, 60_000) })
    const worker = await hf.work()
    const [first] = pulses as [Heard]
    await job.enqueue()
    await world.until(() => first.running.length === 1)
    const gate = line.hold('register')
    await world.store.retire(first.worker as Parameters<Store['retire']>[0])
    await world.until(() => told.of('worker.reregistered').length === 1)
    expect(first.stopped).toBe(true)
    expect(pulses).toHaveLength(1)
    gate.open()
    await world.until(() => pulses.length === 2)
    // Its handler has lost the job and goes on: if it blocks, it is to be named.
    expect(pulses[1]).toMatchObject({ worker: worker.id, running: ['job'], stopped: false })
    await world.until(() => pulses[1]!.running.length === 0)
  })
})

describe('a lease that only the pulse renews', () => {
  /** Heartbeats fail from now on, and nobody rescues. */
  async function unheard() {
    const setting = setUp()
    const { hf, world, line, pulses } = setting
    const job = hf.job({ name: 'job', run: () => undefined })
    await hf.work()
    await world.advance(LEASE_MS / 6)
    line.fail(['heartbeat', 'upkeep.rescue'], refused)
    return { ...setting, job, pulse: pulses[0]! }
  }

  test('is as sure as any other', async () => {
    const { world, told, job, pulse, clock } = await unheard()
    for (let beats = 0; beats < 6; beats++) {
      await world.advance(LEASE_MS / 3)
      pulse.sentMs = clock.monotonicMs()
    }
    await job.enqueue()
    await world.until(() => told.of('job.completed').length === 1, 2_000)
  })

  test('counts from when the renewal was sent', async () => {
    const { world, told, job, pulse, clock } = await unheard()
    pulse.sentMs = clock.monotonicMs()
    await world.advance(LEASE_MS)
    await job.enqueue()
    await world.advance(5_000)
    expect(told.of('job.started')).toEqual([])
  })

  test('is not sure where the store does not know the worker', async () => {
    const { world, told, job, pulse, clock } = await unheard()
    await world.advance(LEASE_MS)
    pulse.alive = false
    pulse.sentMs = clock.monotonicMs()
    await job.enqueue()
    await world.advance(5_000)
    expect(told.of('job.started')).toEqual([])
  })
})

describe('a block of the loop', () => {
  test('is told of when it is over, with what ran at the time', async () => {
    const { hf, world, told, clock, freeze, thaw } = setUp()
    const slow = hf.job({ name: 'slow', run: ({ signal }) => busy(clock, 60_000, signal) })
    const quick = hf.job({ name: 'quick', run: () => undefined })
    const worker = await hf.work()
    await world.advance(1_000)
    await quick.enqueue()
    const { id } = await slow.enqueue()
    await world.until(() => told.of('job.started').length === 2)
    await world.advance(1_000)
    freeze()
    await world.advance(5_000)
    expect(told.of('worker.blocked')).toEqual([])
    thaw()
    const [blocked, ...more] = told.of('worker.blocked')
    expect(blocked).toMatchObject({ worker: worker.id, jobs: [{ id, job: 'slow' }] })
    expect(blocked!.blockedMs).toBeGreaterThanOrEqual(4_800)
    expect(blocked!.blockedMs).toBeLessThanOrEqual(5_000)
    expect(more).toEqual([])
    await world.advance(10_000)
    expect(told.of('worker.blocked')).toHaveLength(1)
  })

  test('is not told of where it was short', async () => {
    const { hf, world, told, freeze, thaw } = setUp()
    hf.job({ name: 'job', run: () => undefined })
    await hf.work()
    await world.advance(1_000)
    freeze()
    await world.advance(900)
    thaw()
    await world.advance(1_000)
    expect(told.of('worker.blocked')).toEqual([])
  })
})

test('a store that cannot renew from outside the loop has no pulse, and nothing is told', async () => {
  const { hf, world, told, freeze, thaw } = alone({}, { keepAlive: () => null })
  hf.job({ name: 'job', run: () => undefined })
  await hf.work()
  freeze()
  await world.advance(5_000)
  thaw()
  await world.advance(1_000)
  expect(told.of('worker.blocked')).toEqual([])
})
