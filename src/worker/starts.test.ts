/** What must not start does not, however late the worker hears of it; and which jobs a lost worker may have started. */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { alone, busy, deferred, letPromisesRun, VirtualWorld, type Line } from '../../test/support/virtual.ts'
import { LATEST_ARRIVAL_MS, type CycleRequest, type HeartbeatRequest } from '../stores/store.ts'

interface Sent {
  readonly method: string
  readonly args: readonly unknown[]
}

const claims = ({ method, args }: Sent): boolean =>
  method === 'cycle' && (args[0] as CycleRequest).claim !== null
const settles = ({ method, args }: Sent): boolean =>
  method === 'cycle' && (args[0] as CycleRequest).settle.length > 0

/** How many jobs it can have started, as each heartbeat said. */
const sentNumbers = (line: Line): number[] =>
  line.callsTo('heartbeat').flatMap(({ args }) => (args[0] as HeartbeatRequest).atOnce ?? [])

/** A worker whose claim is under way: the store has answered it, and the answer is held back. */
async function claiming() {
  const parts = alone()
  const { hf, world, line } = parts
  const job = hf.job({ name: 'job', run: () => undefined })
  await hf.work()
  await world.advance(1_000)
  const reply = line.hold(claims)
  const handle = await job.enqueue()
  await world.advance(1)
  expect(await handle.state()).toBe('running')
  const elsewhere = await world.process().hf.contract({ name: 'job' }).get(handle.id)
  return { ...parts, handle, reply, elsewhere: elsewhere! }
}

describe('a cancel that comes while the claim is under way', () => {
  test('keeps the job from starting: in the same process', async () => {
    const { world, told, handle, reply } = await claiming()
    const cancelling = handle.cancel('no')
    await letPromisesRun()
    reply.open()
    expect(await world.run(cancelling)).toBe('cancelled')
    expect(told.of('job.started')).toEqual([])
    expect(await world.record(handle.id)).toMatchObject({ state: 'cancelled', reason: 'no' })
  })

  test('keeps the job from starting: from another process', async () => {
    const { world, told, handle, reply, elsewhere } = await claiming()
    const cancelling = elsewhere.cancel('no')
    await world.advance(20)
    reply.open()
    expect(await world.run(cancelling)).toBe('cancelled')
    expect(told.of('job.started')).toEqual([])
    expect(await world.record(handle.id)).toMatchObject({ state: 'cancelled', reason: 'no' })
  })

  test('keeps the job from starting where hints are lost and the answer comes later than the cancel waits', async () => {
    const { world, told, handle, reply, elsewhere, line } = await claiming()
    line.losesHints = true
    expect(await world.run(elsewhere.cancel('no'))).toBe('requested')
    reply.open()
    await world.advance(1_000)
    expect(told.of('job.started')).toEqual([])
    expect(await world.record(handle.id)).toMatchObject({ state: 'cancelled', reason: 'no' })
  })
})

describe('a pause that comes while the claim is under way', () => {
  test('has its jobs given back without using an attempt: in the same process', async () => {
    const { hf, world, told, handle, reply } = await claiming()
    await hf.pause('default')
    reply.open()
    await world.advance(50)
    expect(told.of('job.started')).toEqual([])
    expect(await world.record(handle.id)).toMatchObject({ state: 'ready', attempt: 0 })
    await hf.resume('default')
    expect(await world.run(handle.result())).toBeUndefined()
  })

  test('has its jobs given back where hints are lost and the answer comes late', async () => {
    const { world, told, handle, reply, line } = await claiming()
    line.losesHints = true
    await world.process().hf.pause('default')
    await world.advance(900)
    reply.open()
    await world.advance(500)
    expect(told.of('job.started')).toEqual([])
    expect(await world.record(handle.id)).toMatchObject({ state: 'ready', attempt: 0 })
  })
})

describe('a job that waits to be started', () => {
  test('is asked about again after a while: what was cancelled or paused meanwhile stays unstarted', async () => {
    const { hf, world, told, line } = alone()
    const job = hf.batchJob({
      name: 'rows',
      input: z.number(),
      batch: { size: 3, fill: 3, wait: '5s' },
      run: ({ jobs }) => jobs.map(() => null),
    })
    await hf.work()
    const { ids } = await job.enqueueMany([1, 2])
    await world.advance(100)
    line.losesHints = true
    const other = world.process().hf
    const handle = await other.contract({ name: 'rows', input: z.number() }).get(ids[0]!)
    expect(await world.run(handle!.cancel())).toBe('requested')
    await world.until(() => told.of('job.completed').length === 1)
    expect(told.of('job.started').map(({ id }) => id)).toEqual([ids[1]])
    expect(await world.record(ids[0]!)).toMatchObject({ state: 'cancelled' })
  })

  test('is not started by a process that was frozen while it was cancelled', async () => {
    const world = new VirtualWorld()
    const victim = world.process()
    const gate = deferred()
    const ran: number[] = []
    const job = victim.hf.job({
      name: 'job',
      input: z.number(),
      async run({ input }) {
        ran.push(input)
        await (input < 300 ? busy(victim.clock, 1) : gate.promise)
      },
    })
    const { ids } = await job.enqueueMany(Array.from({ length: 320 }, (_, n) => n))
    await victim.hf.work({ concurrency: 1 })
    await world.until(() => ran.at(-1) === 300)
    const handle = await world.process().hf.contract({ name: 'job', input: z.number() }).get(ids[301]!)
    victim.freeze()
    expect(await world.run(handle!.cancel())).toBe('requested')
    await world.advance(2_000)
    victim.thaw()
    gate.resolve()
    await world.until(() => victim.told.of('job.completed').length === 319)
    expect(ran).not.toContain(301)
    expect(await handle!.state()).toBe('cancelled')
  })

  test('is started all the same where the store takes seconds to answer', async () => {
    const { hf, world, line, clock } = alone()
    const slow = async (perform: () => Promise<unknown>): Promise<unknown> => {
      const answer = await perform()
      await busy(clock, 1_500)
      return answer
    }
    const job = hf.job({ name: 'job', run: () => 'done' })
    await hf.work()
    line.fail(['cycle', 'heartbeat'], slow)
    const handle = await job.enqueue()
    expect(await world.run(handle.result())).toBe('done')
  })
})

/** A worker with one slot that has many jobs claimed and is in the middle of the one numbered 300. */
async function backlogged() {
  const world = new VirtualWorld()
  const survivor = world.process()
  const victim = world.process()
  const ran: number[] = []
  const definition = { name: 'job', input: z.number() } as const
  survivor.hf.job({ ...definition, run: () => undefined })
  const job = victim.hf.job({
    ...definition,
    async run({ input }) {
      ran.push(input)
      await (input < 300 ? busy(victim.clock, 1) : new Promise(() => undefined))
    },
  })
  const { ids } = await job.enqueueMany(Array.from({ length: 320 }, (_, n) => n))
  await victim.hf.work({ concurrency: 1 })
  await world.until(() => ran.at(-1) === 300)
  return { world, survivor, victim, ids }
}

describe('a worker that dies with jobs that it has not started', () => {
  test('makes a suspect of the one that ran; the others are ready again at once', async () => {
    const { world, survivor, victim, ids } = await backlogged()
    victim.kill()
    await survivor.hf.work()
    await world.until(() => survivor.told.of('worker.lost').length === 1)
    const rescued = survivor.told.of('job.rescued')
    expect(rescued.filter(({ to }) => to === 'scheduled').map(({ id }) => id)).toEqual([ids[300]])
    expect(rescued.filter(({ to }) => to === 'ready').length).toBeGreaterThan(3)
    await world.until(() => survivor.told.of('job.completed').length === 20)
    for (const { id, to } of rescued)
      expect(await world.record(id)).toMatchObject({ attempt: 1, crashes: to === 'ready' ? 0 : 1 })
  })
})

describe('the number of jobs that a worker may have started', () => {
  test('is that of its slots: a slot waits until the settle before it is answered', async () => {
    const { hf, world, line, told } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    const settle = line.hold(settles)
    await job.enqueueMany([undefined, undefined])
    await hf.work({ concurrency: 1, poll: '10m' })
    await world.until(() => settle.held() === 1)
    await world.advance(100)
    expect(told.of('job.started')).toHaveLength(1)
    settle.open()
    await world.until(() => told.of('job.completed').length === 2)
  })

  test('grows where waiting for answers costs too much, and shrinks again', async () => {
    const { hf, world, line, clock, told } = alone()
    const slow = async (perform: () => Promise<unknown>): Promise<unknown> => {
      const answer = await perform()
      await busy(clock, 5)
      return answer
    }
    line.fail('cycle', slow)
    const job = hf.job({ name: 'job', run: () => busy(clock, 1) })
    await job.enqueueMany(Array.from({ length: 1_000 }, () => undefined))
    await hf.work({ concurrency: 4 })
    await world.until(() => told.of('job.completed').length === 1_000)
    expect(line.callsTo('register')[0]?.args[2]).toBe(4)
    const most = Math.max(...sentNumbers(line))
    expect(most).toBeGreaterThan(6)
    await world.advance(60_000)
    expect(sentNumbers(line).at(-1)).toBe(4)
  })
})

/** A worker with two slots whose jobs never end. */
async function twoSlots() {
  const world = new VirtualWorld()
  const victim = world.process()
  const { line } = victim
  line.losesHints = true
  const ran: string[] = []
  const job = victim.hf.job({
    name: 'job',
    run: ({ job: { id } }) => {
      ran.push(id)
      return new Promise(() => undefined)
    },
  })
  await victim.hf.work({ concurrency: 2 })
  /** Has a claim given up whose request is on its way for long. Returns how to let it arrive: it takes two jobs. */
  const giveUpClaim = async () => {
    const request = line.hold(claims, 'request')
    await world.until(() => request.held() === 1)
    await world.advance(5_000)
    return async (): Promise<void> => {
      const { ids } = await job.enqueueMany([undefined, undefined])
      request.open()
      await letPromisesRun()
      for (const id of ids) expect(await world.record(id)).toMatchObject({ state: 'running' })
    }
  }
  const die = async (): Promise<void> => {
    victim.kill()
    const survivor = world.process()
    survivor.hf.job({ name: 'job', run: () => undefined })
    await survivor.hf.work()
    await world.until(() => survivor.told.of('worker.lost').length === 1)
  }
  return { world, line, job, ran, giveUpClaim, die }
}

describe('a claim that reaches the store after the worker gave it up', () => {
  test('does not hide the jobs that the worker starts later: each is a suspect if the worker dies', async () => {
    const { world, line, job, ran, giveUpClaim, die } = await twoSlots()
    const arrive = await giveUpClaim()
    // None of the heartbeats that are answered meanwhile finds a lease.
    const beats = line.callsTo('heartbeat').length
    await world.until(() => line.callsTo('heartbeat').length === beats + 5)
    await arrive()
    const { ids } = await job.enqueueMany([undefined, undefined])
    await world.until(() => ran.length === 2)
    expect(ran).toEqual(ids)
    await die()
    for (const id of ran) expect(await world.record(id)).toMatchObject({ crashes: 1 })
  })

  test('is counted until it can no longer arrive', async () => {
    const { world, line, giveUpClaim } = await twoSlots()
    await giveUpClaim()
    await world.advance(LATEST_ARRIVAL_MS - 5_000)
    expect(sentNumbers(line).at(-1)).toBe(4)
    await world.advance(30_000)
    expect(sentNumbers(line).at(-1)).toBe(2)
  })
})

describe('a heartbeat that reaches the store after a later one', () => {
  test('does not lower the number: each job that was started is a suspect if the worker dies', async () => {
    const { world, line, job, ran, giveUpClaim, die } = await twoSlots()
    const late = line.hold('heartbeat', 'request')
    await world.until(() => late.held() === 1)
    const arrive = await giveUpClaim()
    await arrive()
    await job.enqueueMany([undefined, undefined])
    await world.until(() => ran.length === 2)
    late.open()
    await letPromisesRun()
    await die()
    for (const id of ran) expect(await world.record(id)).toMatchObject({ crashes: 1 })
  })
})

describe('a worker that the store answers slowly', () => {
  test('starts nothing after a cancel from elsewhere has resolved', async () => {
    const { hf, world, line, clock, told } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    await hf.work()
    line.losesHints = true
    line.fail(['cycle', 'heartbeat'], async (perform) => {
      const answer = await perform()
      await busy(clock, 1_500)
      return answer
    })
    const other = world.process().hf.contract({ name: 'job' })
    const startedMs: number[] = []
    hf.on('job.started', () => void startedMs.push(world.nowMs))
    // Until it has learned that it needs more time.
    const first = await job.enqueue()
    await world.run(first.result())
    let late = 0
    for (let round = 0; round < 20; round++) {
      const { id } = await job.enqueue()
      const handle = (await other.get(id))!
      while ((await handle.state()) === 'ready') await world.advance(50)
      await world.run(handle.cancel())
      const resolvedMs = world.nowMs
      const before = startedMs.length
      await world.advance(10_000)
      late += startedMs.slice(before).filter((ms) => ms > resolvedMs).length
    }
    expect(late).toBe(0)
    expect(told.of('job.started').length, 'some were started before').toBeGreaterThan(1)
    await world.run(hf.close())
    expect(await world.store.notes.list('slow-worker')).toEqual([])
  })
})
