import { describe, expect, test } from 'vitest'
import type { WorkerId } from '../job/ids.ts'
import type { ClaimedJob } from '../job/record.ts'
import type { CycleAnswer, CycleRequest } from '../stores/store.ts'
import {
  alone,
  letPromisesRun,
  type Call,
  type Fault,
  refused,
  replyBroken,
  requestLost,
  thrownBy,
  VirtualWorld,
} from '../../test/support/virtual.ts'

describe('a message that was settled', () => {
  test('cannot be settled again', async () => {
    const { hf } = alone()
    const queue = hf.queue('default')
    const handle = await queue.send('x')
    const [message] = await queue.get()
    await message!.ack()
    await expect(message!.ack()).rejects.toMatchObject({ code: 'HF_MESSAGE_SETTLED' })
    await expect(message!.nack(new Error('late'))).rejects.toMatchObject({ code: 'HF_MESSAGE_SETTLED' })
    expect(await handle.state()).toBe('completed')
  })

  test('is settled once where two do it at the same time', async () => {
    const { hf, line } = alone()
    const queue = hf.queue('default')
    await queue.send('x')
    const [message] = await queue.get()
    const gate = line.hold('cycle', 'reply')
    const first = message!.ack()
    await expect(message!.nack()).rejects.toMatchObject({ code: 'HF_MESSAGE_SETTLED' })
    gate.open()
    await first
  })
})

describe('an ack', () => {
  test('is repeated where its answer was lost, and written once', async () => {
    const { hf, world, line, told } = alone()
    const queue = hf.queue('default')
    const { id } = await queue.send('x')
    const [message] = await queue.get()
    line.fail('cycle', replyBroken, 2)
    await world.run(message!.ack('done'))
    expect(await world.record(id)).toMatchObject({ state: 'completed', result: '"done"' })
    expect(told.of('job.completed')).toHaveLength(1)
  })

  test('that could not be written leaves the message held: it can be acked again', async () => {
    const { hf, world, line } = alone()
    const queue = hf.queue('default')
    const handle = await queue.send('x')
    const [message] = await queue.get()
    line.fail('cycle', refused)
    await expect(world.run(message!.ack())).rejects.toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
    line.mend()
    expect(message!.signal.aborted).toBe(false)
    await message!.ack('at last')
    expect(await handle.result()).toBe('at last')
  })

  test('that could not be written, and was never repeated, ends with the timeout of the message', async () => {
    const { hf, world, line } = alone()
    const queue = hf.queue('default')
    const handle = await queue.send('x', { timeout: '5s' })
    const [message] = await queue.get()
    line.fail('cycle', refused)
    await world.run(thrownBy(message!.ack()))
    expect(world.nowMs).toBeGreaterThan(5_000)
    line.mend()
    await world.advance(1_000)
    expect(await world.record(handle.id)).toMatchObject({ attempt: 1, error: { kind: 'timeout' } })
  })
})

describe('a message that is held too long', () => {
  test('counts as failed when its timeout is over, and comes back', async () => {
    const { hf, world, told } = alone()
    const queue = hf.queue('default')
    const { id } = await queue.send('x', { timeout: '20s' })
    const [message] = await queue.get()
    await world.advance(20_000)
    expect(message!.signal.reason).toMatchObject({ why: 'timeout' })
    expect(told.of('job.failed')).toMatchObject([{ id, kind: 'timeout', durationMs: 20_000 }])
    const [again] = await world.run(queue.get({ wait: '1m' }))
    expect(again?.job.attempt).toBe(2)
    await expect(message!.ack()).rejects.toMatchObject({
      code: 'HF_LEASE_LOST',
      message: expect.stringMatching(/longer than 20000 ms/),
    })
    await again!.ack()
  })

  test('is failed after an outage also where the store was away when its time was over', async () => {
    const { hf, world, line } = alone()
    const queue = hf.queue('default')
    const { id } = await queue.send('x', { timeout: '20s' })
    const [message] = await queue.get()
    line.fail('cycle', requestLost)
    await world.advance(60_000)
    expect(message!.signal.aborted).toBe(true)
    expect(await world.record(id)).toMatchObject({ state: 'running' })
    line.mend()
    await world.advance(12_000)
    expect(await world.record(id)).toMatchObject({ error: { kind: 'timeout' }, attempt: 1 })
  })

  test('stays held for as long as its timeout allows: heartbeats renew the lease', async () => {
    const { hf, world } = alone()
    const queue = hf.queue('default')
    const handle = await queue.send('x', { timeout: '10m' })
    const [message] = await queue.get()
    // Somebody who would rescue it, were it not renewed.
    expect(await world.process().hf.queue('default').get()).toEqual([])
    await world.advance(590_000)
    await message!.ack('slow but sure')
    expect(await handle.result()).toBe('slow but sure')
  })
})

describe('a message that is cancelled', () => {
  test('tells its holder by the signal, and is cancelled', async () => {
    const { hf, world, told } = alone()
    const queue = hf.queue('default')
    const handle = await queue.send('x')
    const [message] = await queue.get()
    expect(await world.run(handle.cancel('stop'))).toBe('cancelled')
    await world.advance(1)
    expect(message!.signal.reason).toMatchObject({ why: 'cancelled', message: 'stop' })
    expect(await world.record(handle.id)).toMatchObject({ state: 'cancelled', reason: 'stop' })
    await expect(message!.ack()).rejects.toMatchObject({ code: 'HF_LEASE_LOST' })
    expect(told.of('job.cancelled')).toHaveLength(1)
  })
})

describe('a message whose lease was lost', () => {
  const lost = async () => {
    const world = new VirtualWorld()
    const holder = world.process()
    const queue = holder.hf.queue('default')
    const handle = await queue.send('x')
    const [message] = await queue.get()
    const other = world.process()
    const others = other.hf.queue('default')
    expect(await others.get()).toEqual([])
    holder.line.breakDown()
    const [again] = await world.run(others.get({ wait: '5m' }))
    return { world, holder, queue, handle, message: message!, other, again: again! }
  }

  test('is refused with HF_LEASE_LOST, and the new holder is not disturbed', async () => {
    const { world, holder, handle, message, again, other } = await lost()
    expect(other.told.of('job.rescued')).toHaveLength(1)
    holder.line.mend()
    await expect(world.run(message.ack('stale'))).rejects.toMatchObject({ code: 'HF_LEASE_LOST' })
    expect(await world.record(handle.id)).toMatchObject({ state: 'running' })
    await again.ack('fresh')
    expect(await handle.result()).toBe('fresh')
    expect(again.fence).toBeGreaterThan(message.fence)
  })

  test('fires the signal once its holder learns of it, who may go on under a new id', async () => {
    const { world, holder, message, queue, again } = await lost()
    holder.line.mend()
    await world.until(() => message.signal.aborted, 5_000)
    expect(message.signal.reason).toMatchObject({ why: 'lease_lost' })
    expect(holder.told.of('job.lost')).toHaveLength(1)
    expect(holder.told.of('worker.reregistered')).toHaveLength(1)
    await again.ack()
    await queue.send('next')
    const [next] = await world.run(queue.get({ wait: '10s' }))
    await next!.ack()
  })
})

describe('closing', () => {
  test('gives unfinished messages back without using an attempt', async () => {
    const { hf, world, told } = alone()
    const queue = hf.queue('default')
    const ids = [(await queue.send('a')).id, (await queue.send('b')).id, (await queue.send('c')).id]
    const [first, second] = await queue.get({ limit: 3 })
    await first!.ack()
    await world.run(hf.close())
    expect(second!.signal.reason).toMatchObject({ why: 'shutdown' })
    expect(await world.record(ids[0]!)).toMatchObject({ state: 'completed' })
    for (const id of ids.slice(1))
      expect(await world.record(id)).toMatchObject({ state: 'ready', attempt: 0 })
    expect(told.of('job.released')).toHaveLength(2)
    await expect(second!.ack()).rejects.toMatchObject({ code: 'HF_LEASE_LOST' })
    await expect(queue.get()).rejects.toMatchObject({ code: 'HF_CLOSED' })
    await expect(queue.send('late')).rejects.toMatchObject({ code: 'HF_CLOSED' })
  })

  test('ends those who wait with HF_CLOSED, at once', async () => {
    const { hf, world } = alone()
    const waiting = thrownBy(hf.queue('default').get({ wait: '1h' }))
    await world.advance(5_000)
    await world.run(hf.close())
    expect(await waiting).toMatchObject({ code: 'HF_CLOSED' })
    expect(world.nowMs).toBe(5_000)
  })

  test('waits for a claim that is under way, and gives back what it brings', async () => {
    const { hf, world, line } = alone()
    const queue = hf.queue('default')
    await queue.get()
    const { id } = await queue.send('x')
    const gate = line.hold('cycle', 'reply')
    const getting = queue.get()
    await letPromisesRun()
    expect(await world.record(id)).toMatchObject({ state: 'running' })
    const closing = hf.close()
    await world.advance(1_000)
    gate.open()
    await world.run(closing)
    expect((await getting)[0]?.signal.aborted).toBe(true)
    expect(await world.record(id)).toMatchObject({ state: 'ready', attempt: 0, crashes: 0 })
  })

  test('leaves no incarnation in the store', async () => {
    const { hf, world, line } = alone()
    await hf.queue('default').get()
    const worker = line.callsTo('register')[0]?.args[0] as WorkerId
    await world.run(hf.close())
    expect(await world.store.heartbeat({ worker, undelivered: [] })).toMatchObject({ alive: false })
  })

  test('ends within its bounds while the store is away, however many messages are held', async () => {
    const { hf, world, line } = alone()
    const queue = hf.queue('default')
    for (let n = 0; n < 50; n++) await queue.send(n)
    expect(await queue.get({ limit: 50 })).toHaveLength(50)
    await world.advance(1_000)
    line.breakDown(requestLost)
    const beganMs = world.nowMs
    await world.run(hf.close().catch(() => undefined))
    expect(world.nowMs - beganMs).toBeLessThanOrEqual(60_000)
  })
})

describe('the first get()', () => {
  test.each(['subscribe', 'register'])('can be tried again where the store could not %s', async (method) => {
    const { hf, world, line } = alone()
    const queue = hf.queue('default')
    line.fail(method, refused)
    await expect(world.run(queue.get())).rejects.toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
    line.mend()
    await queue.send('x')
    const [message] = await queue.get()
    await message!.ack()
    await world.advance(60_000)
    const beats = line.callsTo('heartbeat').length
    expect(beats).toBeLessThan(9)
  })
})

describe('a claimed lease that cannot be read', () => {
  const claims = ({ method, args }: Call): boolean =>
    method === 'cycle' && (args[0] as CycleRequest).claim !== null

  /** Replaces the first job of the first lease. */
  const firstJob =
    (change: (job: ClaimedJob) => unknown): Fault =>
    async (perform) => {
      const answer = (await perform()) as CycleAnswer
      const [lease, ...others] = answer.leases
      const [job, ...rest] = lease!.jobs
      return { ...answer, leases: [{ ...lease, jobs: [change(job!), ...rest] }, ...others] }
    }

  /** A job that lost a worker comes in a lease of its own, behind the plain one. */
  async function withSuspect() {
    const fleet = alone()
    const { hf, world } = fleet
    const queue = hf.queue('default')
    await queue.send('suspect')
    const lost = 'lost' as WorkerId
    await world.store.register(lost, 30_000)
    const claim = { queue: 'default', limit: 1, suspects: true }
    await world.store.cycle({ worker: lost, settle: [], claim })
    await world.store.retire(lost)
    await world.store.upkeep.rescue(1)
    await world.advance(60_000)
    await world.store.upkeep.promote(1)
    const plain = await queue.send('plain')
    return { ...fleet, queue, plain }
  }

  test('is given back, and the messages of the other leases are given out', async () => {
    const { queue, world, line, told, plain } = await withSuspect()
    line.fail(
      claims,
      firstJob(() => null),
      1,
    )
    const messages = await queue.get({ limit: 2 })
    expect(messages.map(({ payload }) => payload)).toEqual(['suspect'])
    expect(told.of('worker.error')).toMatchObject([{ doing: 'claim messages', error: expect.any(TypeError) }])
    await messages[0]!.ack()
    const [again] = await world.run(queue.get({ wait: '1m' }))
    expect(again).toMatchObject({ id: plain.id, job: { attempt: 1 } })
    await again!.ack()
    expect(told.of('job.lost')).toEqual([])
  })

  test('fails a get() that has nothing else, which gets its messages once they are given back', async () => {
    const { hf, world, line, told } = alone()
    const queue = hf.queue('default')
    const sent = [await queue.send('a'), await queue.send('b')]
    line.fail(
      claims,
      firstJob(() => null),
      1,
    )
    await expect(queue.get({ limit: 2 })).rejects.toThrow(TypeError)
    const messages = await world.run(queue.get({ limit: 2, wait: '1m' }))
    expect(messages.map(({ id, job }) => [id, job.attempt])).toEqual(sent.map(({ id }) => [id, 1]))
    expect(told.of('job.lost')).toEqual([])
    await world.run(hf.close())
  })

  test.each([
    ['has no readable payload', (job: ClaimedJob) => ({ ...job, payload: '{' }), []],
    [
      'cannot be started',
      (job: ClaimedJob) => {
        const unreadable = (): never => {
          throw new TypeError('this field cannot be read')
        }
        return {
          ...job,
          envelope: Object.defineProperty({ ...job.envelope }, 'timeoutMs', { get: unreadable }),
        }
      },
      ['start'],
    ],
  ])('fails one message alone if it %s', async (_, change, doing) => {
    const { hf, world, line, told } = alone()
    const queue = hf.queue('default')
    const [bad] = [await queue.send('bad'), await queue.send('good')]
    line.fail(claims, firstJob(change), 1)
    const messages = await queue.get({ limit: 2 })
    expect(messages.map(({ payload }) => payload)).toEqual(['good'])
    await world.advance(1)
    expect(told.of('job.failed')).toMatchObject([{ id: bad.id, attempt: 1, final: false }])
    expect(told.of('worker.error').map((told) => told.doing)).toEqual(
      doing.map((one) => `${one} job ${bad.id}`),
    )
    await messages[0]!.ack()
    const [again] = await world.run(queue.get({ wait: '1m' }))
    expect(again).toMatchObject({ id: bad.id, payload: 'bad', job: { attempt: 2 } })
    await again!.ack()
  })
})
