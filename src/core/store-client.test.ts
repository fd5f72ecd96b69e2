/** What a caller is told if the reply to the first try was lost: what is true now, never "too late". */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { HoldfastError } from '../errors.ts'
import {
  alone,
  replyBroken,
  replyLost,
  requestLost,
  thrownBy,
  type Call,
  type Fault,
} from '../../test/support/virtual.ts'

const run = (): void => undefined

const KEEP_NOTHING = {
  completedMs: 0,
  deadMs: 0,
  cancelledMs: 0,
  maxCompleted: null,
  maxDead: null,
  maxCancelled: null,
}

/** The step is taken; then no answer comes, or the line breaks. */
const lost = [
  ['is lost', replyLost],
  ['breaks off', replyBroken],
] as const

/** Bulk changes of one kind. */
const changing =
  (type: string) =>
  ({ method, args }: Call): boolean =>
    method === 'admin.change' && (args[1] as { readonly type: string }).type === type

async function withDead(count: number) {
  const fleet = alone()
  const { hf, world, told } = fleet
  const job = hf.job({
    name: 'flaky',
    input: z.number(),
    retry: { attempts: 1 },
    unique: (n) => ({ key: `number ${n}` }),
    run: () => {
      throw new Error('broken')
    },
  })
  const { ids } = await job.enqueueMany(Array.from({ length: count }, (_, n) => n))
  const worker = await hf.work()
  await world.until(() => told.of('job.failed').length === count)
  await world.run(worker.stop())
  return { ...fleet, job, ids }
}

describe.each(lost)('if the first reply %s', (_, fault) => {
  test('an enqueue is written once', async () => {
    const { hf, world, line } = alone()
    line.fail('enqueue', fault, 1)
    const handle = await world.run(hf.job({ name: 'job', run }).enqueue())
    expect(handle.outcome).toBe('inserted')
    expect(await world.counts()).toEqual({ ready: 1 })
  })

  test('a cancel says that the job is cancelled', async () => {
    const { hf, world, line } = alone()
    const handle = await hf.job({ name: 'job', run }).enqueue()
    line.fail('admin.change', fault, 1)
    expect(await world.run(handle.cancel('not needed'))).toBe('cancelled')
    expect(await world.record(handle.id)).toMatchObject({ state: 'cancelled', reason: 'not needed' })
    expect(line.callsTo('admin.change')).toHaveLength(2)
  })

  test('a cancel of a job that is not kept says that it is cancelled', async () => {
    const { hf, world, line } = alone()
    const handle = await hf.job({ name: 'job', run }).enqueue()
    const pruned: Fault = async (perform) => {
      await perform()
      await world.store.upkeep.prune(KEEP_NOTHING, 10)
    }
    line.fail('admin.change', (perform) => fault(() => pruned(perform)), 1)
    expect(await world.run(handle.cancel())).toBe('cancelled')
    expect(await world.counts()).toEqual({})
  })

  test('a cancel of a job that had completed is too late', async () => {
    const { hf, world, line, told } = alone()
    const handle = await hf.job({ name: 'job', run }).enqueue()
    await hf.work()
    await world.until(() => told.of('job.completed').length === 1)
    line.fail('admin.change', fault, 1)
    expect(await world.run(handle.cancel())).toBe('too_late')
  })

  test('a cancel of a job that runs says how it ended', async () => {
    const { hf, world, line, told } = alone()
    const aborted = ({ signal }: { signal: AbortSignal }): Promise<never> =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error))
      })
    const handle = await hf.job({ name: 'job', run: aborted }).enqueue()
    await hf.work()
    await world.until(() => told.of('job.started').length === 1)
    line.fail('admin.change', fault, 1)
    expect(['cancelled', 'requested']).toContain(await world.run(handle.cancel()))
    await world.until(() => told.of('job.cancelled').length === 1)
  })

  test('an edit says that the job is edited, even if a worker took the job meanwhile', async () => {
    const { hf, world, line, told } = alone()
    const seen: number[] = []
    const job = hf.job({ name: 'job', input: z.number(), run: ({ input }) => void seen.push(input) })
    const { id } = await job.enqueue(1)
    await hf.pause('default')
    await hf.work()
    line.fail('admin.change', fault, 1)
    // The repeat has to wait until the job, edited, is completed.
    const gate = line.hold(({ method }) => method === 'admin.change', 'request')
    const edited = job.edit(id, { input: 2 })
    await world.until(() => line.callsTo('admin.change').length === 2)
    await hf.resume('default')
    await world.until(() => told.of('job.completed').length === 1)
    gate.open()
    expect(await world.run(edited)).toBe(true)
    expect(seen).toEqual([2])
  })

  test('an edit that comes too late says so', async () => {
    const { hf, world, line, told } = alone()
    const job = hf.job({ name: 'job', input: z.number(), run })
    const { id } = await job.enqueue(1)
    await hf.work()
    await world.until(() => told.of('job.completed').length === 1)
    line.fail('admin.change', fault, 1)
    expect(await world.run(job.edit(id, { input: 2 }))).toBe(false)
  })

  test('a replay of dead letters by id counts what is ready again', async () => {
    const { hf, world, line, ids } = await withDead(3)
    line.fail(changing('replay'), fault, 1)
    expect(await world.run(hf.deadLetters.replay(ids[0]!))).toEqual({ changed: 1, skipped: 0, cursor: null })
    line.fail(changing('replay'), fault, 1)
    const rest = { ids: [ids[1]!, ids[2]!, '017f22e2-79b0-7cc3-98c4-dc0c0c07398f'] }
    expect(await world.run(hf.deadLetters.replay(rest))).toEqual({ changed: 2, skipped: 0, cursor: null })
    expect(await world.counts()).toEqual({ ready: 3 })
  })

  test('a replay counts a job that has completed meanwhile and is not kept', async () => {
    const { hf, world, line, told } = alone({ keep: { completed: 0 } })
    let isBroken = true
    const job = hf.job({
      name: 'flaky',
      retry: { attempts: 1 },
      run: () => {
        if (isBroken) throw new Error('broken')
      },
    })
    const { id } = await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.failed').length === 1)
    isBroken = false
    line.fail(changing('replay'), fault, 1)
    const gate = line.hold(changing('replay'), 'request')
    const replayed = hf.deadLetters.replay(id)
    await world.until(() => told.of('job.completed').length === 1 && gate.held() === 1)
    gate.open()
    expect(await world.run(replayed)).toMatchObject({ changed: 1 })
    expect(await world.counts()).toEqual({})
  })

  test('a replay does not count a job whose unique key is held by another', async () => {
    const { hf, world, line, job, ids } = await withDead(2)
    await job.enqueue(1)
    line.fail(changing('replay'), fault, 1)
    expect(await world.run(hf.deadLetters.replay({ ids }))).toEqual({ changed: 1, skipped: 1, cursor: null })
    line.fail(changing('replay'), fault, 1)
    const again = hf.deadLetters.replay(ids[1]!, { input: 7 })
    expect(await world.run(again)).toEqual({ changed: 0, skipped: 1, cursor: null })
  })

  test('a replay with another input counts every job', async () => {
    const { hf, world, line, ids } = await withDead(2)
    line.fail(changing('replay'), fault, 1)
    const replayed = hf.deadLetters.replay({ all: true }, { input: 5 })
    expect(await world.run(replayed)).toEqual({ changed: 2, skipped: 0, cursor: null })
    for (const id of ids) expect(await world.record(id)).toMatchObject({ state: 'ready', payload: '5' })
  })

  test('a discard of dead letters by id counts what is gone', async () => {
    const { hf, world, line, ids } = await withDead(3)
    line.fail(changing('discard'), fault, 1)
    expect(await world.run(hf.deadLetters.discard(ids[0]!))).toEqual({ changed: 1, skipped: 0, cursor: null })
    line.fail(changing('discard'), fault, 1)
    expect(await world.run(hf.deadLetters.discard({ ids }))).toMatchObject({ changed: 3 })
    expect(await world.counts()).toEqual({})
  })

  test('a bulk change by filter is made once, and goes on', async () => {
    const { hf, world, line } = await withDead(3)
    line.fail(changing('replay'), fault, 1)
    expect(await world.run(hf.deadLetters.replay({ all: true }))).toMatchObject({ cursor: null })
    expect(await world.counts()).toEqual({ ready: 3 })
  })

  test('the removal of a schedule says that it is gone', async () => {
    const { hf, world, line } = alone()
    const job = hf.job({ name: 'job', run })
    await job.schedule('nightly', { every: '1d' })
    await job.schedule('hourly', { every: '1h' })
    line.fail('schedules.put', fault, 1)
    expect(await world.run(job.unschedule('nightly'))).toBe(true)
    const hourly = await hf.schedules.get('hourly')
    line.fail('schedules.put', fault, 1)
    expect(await world.run(hourly!.remove())).toBe(true)
    expect(await hf.schedules.list()).toEqual([])
    expect(await job.unschedule('nightly')).toBe(false)
  })

  test('an unsubscribe says that the subscription is gone', async () => {
    const { hf, world, line } = alone()
    const subscriber = hf.subscribe({ name: 'listener', to: 'user.created', run })
    await subscriber.subscribe()
    line.fail('notes.put', fault, 1)
    expect(await world.run(subscriber.unsubscribe())).toBe(true)
    expect(await hf.subscriptions.list()).toEqual([])
    expect(await subscriber.unsubscribe()).toBe(false)
    await subscriber.subscribe()
    const [subscription] = await hf.subscriptions.list()
    line.fail('notes.put', fault, 1)
    expect(await world.run(subscription!.remove())).toBe(true)
  })

  test.each([
    ['schedule', 'schedules.put'],
    ['subscribe', 'notes.put'],
    ['pause', 'admin.setPaused'],
  ] as const)('%s takes effect once', async (what, method) => {
    const { hf, world, line } = alone()
    const job = hf.job({ name: 'job', run })
    const subscriber = hf.subscribe({ name: 'listener', to: 'user.created', run })
    line.fail(method, fault, 1)
    const act = {
      schedule: () => job.schedule('nightly', { every: '1d' }),
      subscribe: () => subscriber.subscribe(),
      pause: () => hf.pause('default'),
    }
    await world.run(act[what]())
    const state = {
      schedule: async () => (await hf.schedules.list()).length === 1,
      subscribe: async () => (await hf.subscriptions.list()).length === 1,
      pause: async () => (await hf.queues())[0]?.paused === true,
    }
    expect(await state[what]()).toBe(true)
    expect(line.callsTo(method)).toHaveLength(2)
  })
})

describe('if the first try found no connection', () => {
  const refusedAt = (address: string): Error =>
    Object.assign(new Error(`connect ECONNREFUSED ${address}`), { code: 'ECONNREFUSED', syscall: 'connect' })
  const fault: Fault = () =>
    Promise.reject(new AggregateError([refusedAt('::1'), refusedAt('127.0.0.1')], 'no connection'))

  test('a cancel of a job that never existed finds none', async () => {
    const { hf, world, line } = alone()
    const handle = await hf.job({ name: 'job', run }).enqueue()
    await world.run(handle.cancel())
    await world.store.upkeep.prune(KEEP_NOTHING, 10)
    line.fail('admin.change', fault, 1)
    expect(await world.run(thrownBy(handle.cancel()))).toMatchObject({ code: 'HF_JOB_NOT_FOUND' })
    expect(line.callsTo('admin.change')).toHaveLength(3)
  })

  test('nothing was removed that never existed', async () => {
    const { hf, world, line } = alone()
    const job = hf.job({ name: 'job', run })
    const subscriber = hf.subscribe({ name: 'listener', to: 'user.created', run })
    line.fail('schedules.put', fault, 1)
    expect(await world.run(job.unschedule('nightly'))).toBe(false)
    line.fail('notes.put', fault, 1)
    expect(await world.run(subscriber.unsubscribe())).toBe(false)
  })

  test('a change is made by the second', async () => {
    const { hf, world, line } = alone()
    const handle = await hf.job({ name: 'job', run }).enqueue()
    line.fail('admin.change', fault, 1)
    expect(await world.run(handle.cancel())).toBe('cancelled')
  })
})

test('a cancel has one deadline, also if it has to look what became of the job', async () => {
  const { hf, world, line } = alone({ timeout: '5s' })
  const handle = await hf.job({ name: 'job', run }).enqueue()
  line.fail('admin.change', replyLost, 1)
  line.fail('admin.get', requestLost)
  const begunMs = world.nowMs
  expect(await world.run(thrownBy(handle.cancel()))).toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
  expect(world.nowMs - begunMs).toBeLessThanOrEqual(5_000)
})

test('an enqueue that the store refuses in part has one deadline for all parts', async () => {
  const { hf, world, line } = alone({ timeout: '5s' })
  const job = hf.job({ name: 'job', input: z.number(), run })
  const refusal = new HoldfastError('HF_STORE_REFUSED', 'The database refused a value.')
  line.fail('enqueue', () => Promise.reject(refusal), 1)
  line.fail('enqueue', requestLost)
  const begunMs = world.nowMs
  const ends = await world.run(Promise.allSettled([1, 2, 3, 4].map((n) => job.enqueue(n))))
  expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected', 'rejected'])
  expect(world.nowMs - begunMs).toBeLessThanOrEqual(5_001)
})

test('a cancel that its worker heard has no new deadline to look what became of the job', async () => {
  const { hf, world, line } = alone({ timeout: '5s' })
  const other = world.process()
  const heeding = ({ signal }: { signal: AbortSignal }): Promise<never> =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error))
    })
  const handle = await hf.job({ name: 'job', run: heeding }).enqueue()
  other.hf.job({ name: 'job', run: heeding })
  await other.hf.work()
  await world.until(() => other.told.of('job.started').length === 1)
  await handle.state()
  const gate = line.hold('admin.change')
  line.fail('admin.get', requestLost)
  const begunMs = world.nowMs
  const cancelled = thrownBy(handle.cancel())
  await world.advance(2_900)
  gate.open()
  expect(await world.run(cancelled)).toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
  expect(world.nowMs - begunMs).toBeLessThanOrEqual(6_100)
})

test('an enqueueMany whose flush the store refuses in part has one deadline for all parts', async () => {
  const { hf, world, line } = alone({ timeout: '5s' })
  const job = hf.job({ name: 'job', input: z.number(), run })
  const refusal = new HoldfastError('HF_STORE_REFUSED', 'The database refused a value.')
  line.fail('enqueue', () => Promise.reject(refusal), 1)
  line.fail('enqueue', requestLost)
  const begunMs = world.nowMs
  const error = await world.run(thrownBy(job.enqueueMany([1, 2, 3, 4])))
  expect(error).toMatchObject({ code: 'HF_PARTIAL_ENQUEUE' })
  expect(world.nowMs - begunMs).toBeLessThanOrEqual(5_001)
})

test('a publishMany has one deadline, for who subscribes and for their jobs', async () => {
  const { hf, world, line } = alone({ timeout: '5s' })
  const created = hf.event('user.created')
  await hf.subscribe({ name: 'listener', to: 'user.created', run }).subscribe()
  line.fail('notes.list', requestLost, 1)
  line.fail('enqueue', requestLost)
  const begunMs = world.nowMs
  const error = await world.run(thrownBy(created.publishMany([undefined, undefined])))
  expect(error).toMatchObject({ code: 'HF_PARTIAL_PUBLISH' })
  expect(world.nowMs - begunMs).toBeLessThanOrEqual(5_001)
})

test('a bug of the store while a cancel waits for its worker is thrown, not waited out', async () => {
  const { hf, world, line } = alone()
  const other = world.process()
  const handle = await hf.job({ name: 'job', run }).enqueue()
  other.hf.job({ name: 'job', run: () => new Promise(() => undefined) })
  await other.hf.work()
  await world.until(() => other.told.of('job.started').length === 1)
  other.freeze()
  await handle.state()
  const bug: Fault = () => Promise.reject(new TypeError('broken'))
  line.fail((call) => call.method === 'admin.change' && line.callsTo('admin.change').length > 1, bug)
  const begunMs = world.nowMs
  expect(await world.run(thrownBy(handle.cancel()))).toMatchObject({ code: 'HF_STORE_CONTRACT' })
  expect(world.nowMs - begunMs).toBeLessThan(100)
  other.kill()
})

test('while a cancel waits for its worker, each look is one try', async () => {
  const { hf, world, line, told } = alone()
  const other = world.process()
  const idle = ({ signal }: { signal: AbortSignal }): Promise<never> =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error))
    })
  const handle = await hf.job({ name: 'job', run: idle }).enqueue()
  other.hf.job({ name: 'job', run: idle })
  await other.hf.work()
  await world.until(() => other.told.of('job.started').length === 1)
  other.freeze()
  await handle.state()
  line.fail((call) => call.method === 'admin.change' && line.callsTo('admin.change').length > 1, requestLost)
  const begunMs = world.nowMs
  expect(await world.run(handle.cancel())).toBe('requested')
  // The time in which a worker may start a job, and a margin; twice if some worker may be slow.
  expect(world.nowMs - begunMs).toBeLessThanOrEqual(1_100)
  expect(told.of('store.down')).toHaveLength(1)
  other.thaw()
})
