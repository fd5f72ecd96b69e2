import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { alone, deferred, refused, requestLost, VirtualWorld } from '../../test/support/virtual.ts'

describe('the promoter', () => {
  test('moves a job when it falls due, to the millisecond, by the hint of the store', async () => {
    const { hf, world, told } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    await hf.work({ poll: '1h' })
    await world.advance(10_000)
    const due = [250, 90_000, 777, 3_333]
    for (const inMs of due) await job.enqueue(undefined, { in: inMs })
    const beganMs = world.nowMs
    const startedMs: number[] = []
    hf.on('job.started', () => void startedMs.push(world.nowMs - beganMs))
    await world.until(() => told.of('job.completed').length === 4)
    expect(startedMs).toEqual([250, 777, 3_333, 90_000])
  })

  test('is at most a second late where the hints were lost', async () => {
    const { hf, world, told, line } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    line.losesHints = true
    await hf.work({ poll: '50ms' })
    await world.advance(10_000)
    await job.enqueue(undefined, { in: 300 })
    const tookMs = await world.until(() => told.of('job.started').length === 1)
    expect(tookMs).toBeGreaterThanOrEqual(300)
    expect(tookMs).toBeLessThanOrEqual(1_100)
  })

  test('works without a subscription', async () => {
    const { hf, world, told, line } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    // The first subscription is the worker's.
    let subscriptions = 0
    line.fail(({ method }) => method === 'subscribe' && ++subscriptions > 1, refused)
    await hf.work()
    await job.enqueue(undefined, { in: '5s' })
    const tookMs = await world.until(() => told.of('job.completed').length === 1)
    expect(tookMs).toBeLessThanOrEqual(7_000)
  })

  test('sets one timer for any number of hints', async () => {
    const { hf, world } = alone()
    const job = hf.job({ name: 'job', input: z.number(), run: () => undefined })
    const worker = await hf.work()
    await world.advance(1_000)
    for (let n = 1; n <= 50; n++) await job.enqueue(n, { in: 3_600_000 * n })
    await world.run(worker.stop())
    expect(world.clock.nextDueMs()).toBeUndefined()
  })

  test('goes through a backlog without a pause', async () => {
    const { hf, world, line } = alone()
    const job = hf.job({ name: 'job', input: z.number(), run: () => undefined })
    await job.enqueueMany(
      Array.from({ length: 3_500 }, (_, n) => n),
      { in: '1m' },
    )
    await world.advance(60_000)
    await hf.pause('default')
    await hf.work()
    await world.advance(10)
    expect(await world.counts()).toEqual({ ready: 3_500 })
    expect(line.callsTo('upkeep.promote')).toHaveLength(4)
  })
})

describe('the rescuer', () => {
  /** A process that dies with a job in its hands. */
  const victimOf = async (world: VirtualWorld) => {
    const victim = world.process()
    const gate = deferred()
    const job = victim.hf.job({ name: 'job', run: () => gate.promise })
    const { id } = await job.enqueue()
    const worker = await victim.hf.work()
    await world.advance(100)
    victim.kill()
    return { id, worker: worker.id }
  }

  test('takes back the jobs of a dead worker within its lease and one sweep', async () => {
    const world = new VirtualWorld()
    const { hf, told } = world.process()
    hf.job({ name: 'other', run: () => undefined })
    await hf.work()
    await world.advance(60_000)
    // The victim's queue is read by nobody else, so that it alone claims from it.
    const victim = world.process({ queues: { default: {}, own: {} } })
    const gate = deferred()
    const { id } = await victim.hf.job({ name: 'job', queue: 'own', run: () => gate.promise }).enqueue()
    const worker = await victim.hf.work({ queues: ['own'] })
    await world.advance(100)
    victim.kill()
    const tookMs = await world.until(() => told.of('job.rescued').length === 1)
    expect(tookMs).toBeLessThanOrEqual(35_000)
    expect(told.of('job.rescued')).toEqual([
      { id, job: 'job', queue: 'own', worker: worker.id, crashes: 1, to: 'scheduled' },
    ])
    expect(told.of('worker.lost')).toEqual([{ worker: worker.id, jobs: 1 }])
  })

  test('takes nothing until it has seen the store for one lease', async () => {
    const world = new VirtualWorld()
    const { worker } = await victimOf(world)
    await world.advance(300_000)
    const { hf, told } = world.process()
    hf.job({ name: 'job', run: () => undefined })
    await hf.work()
    await world.advance(29_000)
    expect(told.of('job.rescued')).toEqual([])
    await world.advance(7_000)
    expect(told.of('job.rescued')).toHaveLength(1)
    expect(told.of('worker.lost')).toEqual([{ worker, jobs: 1 }])
  })

  test('counts its lease of sight anew after every break, however short', async () => {
    const world = new VirtualWorld()
    await victimOf(world)
    await world.advance(300_000)
    const { hf, told, line } = world.process()
    hf.job({ name: 'job', run: () => undefined })
    await hf.work()
    await world.advance(20_000)
    line.fail('upkeep.lead', refused, 1)
    await world.advance(5_000)
    expect(line.callsTo('upkeep.lead').length).toBeGreaterThan(3)
    await world.advance(25_000)
    expect(told.of('job.rescued')).toEqual([])
    await world.advance(15_000)
    expect(told.of('job.rescued')).toHaveLength(1)
  })

  test('leaves a worker alone that is only slow', async () => {
    const { hf, world, told, line } = alone()
    const gate = deferred()
    const job = hf.job({ name: 'job', timeout: '1h', run: () => gate.promise })
    const { id } = await job.enqueue()
    await hf.work()
    const other = world.process()
    other.hf.job({ name: 'job', run: () => undefined })
    await other.hf.work()
    // Two of three heartbeats are lost.
    let beats = 0
    line.fail(({ method }) => method === 'heartbeat' && ++beats % 3 !== 0, refused)
    await world.advance(600_000)
    expect(await world.record(id)).toMatchObject({ state: 'running', crashes: 0 })
    expect([...told.of('job.rescued'), ...other.told.of('job.rescued')]).toEqual([])
    gate.resolve()
    line.mend()
  })
})

describe('the pruner', () => {
  test('forgets finished jobs when their time is over, each kind by its own', async () => {
    const { hf, world, told } = alone({ keep: { completed: '10m', dead: '30m', cancelled: '20m' } })
    const job = hf.job({
      name: 'job',
      input: z.boolean(),
      retry: { attempts: 1 },
      run({ input }) {
        if (!input) throw new Error('no')
      },
    })
    await hf.work()
    await job.enqueue(true)
    await job.enqueue(false)
    await (await job.enqueue(true, { in: '1h' })).cancel()
    await world.until(() => told.of('job.completed').length === 1 && told.of('job.failed').length === 1)
    await world.advance(9 * 60_000)
    expect(await world.counts()).toEqual({ completed: 1, dead: 1, cancelled: 1 })
    await world.advance(2 * 60_000)
    expect(await world.counts()).toEqual({ dead: 1, cancelled: 1 })
    await world.advance(10 * 60_000)
    expect(await world.counts()).toEqual({ dead: 1 })
    await world.advance(10 * 60_000)
    expect(await world.counts()).toEqual({})
  })

  test('keeps no more than their number allows, and goes through many at once', async () => {
    const { hf, world, told } = alone({ keep: { maxCompleted: 100 } })
    const job = hf.job({ name: 'job', input: z.number(), run: () => undefined })
    await job.enqueueMany(Array.from({ length: 2_500 }, (_, n) => n))
    await hf.work({ concurrency: 500 })
    await world.until(() => told.of('job.completed').length === 2_500)
    await world.advance(31_000)
    expect(await world.counts()).toEqual({ completed: 100 })
  })

  test('keeps what is not finished, however old', async () => {
    const { hf, world } = alone({ keep: { completed: '1m' } })
    const job = hf.job({ name: 'job', run: () => undefined })
    await job.enqueue(undefined, { in: '30d' })
    await hf.work()
    await world.advance(3_600_000)
    expect(await world.counts()).toEqual({ scheduled: 1 })
  })
})

describe('a duty that fails', () => {
  test('is an event, and goes on a second later; the others are not disturbed', async () => {
    const { hf, world, told, line } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    line.fail('upkeep.rescue', refused, 3)
    await hf.work()
    await world.advance(45_000)
    expect(told.of('duty.failed')).toMatchObject([{ duty: 'rescue' }, { duty: 'rescue' }, { duty: 'rescue' }])
    expect(told.of('duty.failed')[0]?.error.message).toMatch(/connection refused/)
    await job.enqueue(undefined, { in: '2s' })
    await world.until(() => told.of('job.completed').length === 1, 3_000)
    expect(line.callsTo('upkeep.rescue').length).toBeGreaterThan(3)
  })

  test('may hang: a stop waits for its deadline and no longer', async () => {
    const { hf, world, line, told } = alone({ timeout: '4s' })
    hf.job({ name: 'job', run: () => undefined })
    const worker = await hf.work()
    await world.advance(5_000)
    line.fail('upkeep.promote', requestLost)
    await world.advance(2_000)
    const beganMs = world.nowMs
    await world.run(worker.stop())
    expect(world.nowMs - beganMs).toBeLessThanOrEqual(5_000)
    expect(told.of('duty.failed')).toEqual([])
  })
})

describe('a bug of the store that no caller hears of', () => {
  test.each([
    ['subscribe', 'subscribe to wake-ups'],
    ['unsubscribe', 'end a subscription'],
    ['upkeep.lead', 'elect a leader'],
    ['notes.put', "note the store's time"],
    ['notes.put', 'list a worker'],
    ['notes.put', 'take a worker off the list'],
    ['notes.put', 'declare the handler of dead letters'],
    ['admin.queues', 'count waiting jobs'],
  ])('in %s is an event: could not %s', async (method, duty) => {
    const { hf, world, told, line } = alone()
    hf.job({ name: 'job', run: () => undefined })
    hf.deadLetters.handle(() => undefined)
    const bug = (): Promise<never> => Promise.reject(new TypeError('broken'))
    // The worker subscribes first; upkeep does after that, and has to do without.
    if (method === 'subscribe') line.fail(() => line.callsTo('subscribe').length === 2, bug)
    const worker = await hf.work()
    await world.advance(1_000)
    if (method !== 'subscribe') line.fail(method, bug)
    await world.advance(60_000)
    await world.run(worker.stop())
    const failed = told.of('duty.failed').find((one) => one.duty === duty)
    expect(failed?.error).toMatchObject({ code: 'HF_STORE_CONTRACT' })
    expect(told.of('store.down')).toEqual([])
  })

  test('is none of an outage: the connection tells of that', async () => {
    const { hf, world, told, line } = alone()
    hf.job({ name: 'job', run: () => undefined })
    const worker = await hf.work()
    await world.advance(1_000)
    line.fail(['notes.put', 'admin.queues', 'upkeep.lead'], refused)
    await world.advance(60_000)
    await world.run(worker.stop())
    expect(told.of('duty.failed')).toEqual([])
  })
})

describe('upkeep', () => {
  test('goes on while only messages are pulled by hand, and ends with the close', async () => {
    const { hf, world } = alone()
    const queue = hf.queue('default')
    await queue.send('later', { in: '10s' })
    expect(await queue.get()).toEqual([])
    const [message] = await world.run(queue.get({ wait: '1m' }))
    expect(world.nowMs).toBe(10_000)
    await message?.ack()
    await world.run(hf.close())
    expect(world.clock.nextDueMs()).toBeUndefined()
  })
})
