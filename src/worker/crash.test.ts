import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { busy, deferred, VirtualWorld, type Process } from '../../test/support/virtual.ts'

const never = new Promise<never>(() => undefined)

/** A process that runs 'job' (input: what it does) and 'innocent', until it meets poison. */
async function start(world: VirtualWorld, options: { concurrency?: number; poll?: number } = {}) {
  const process = world.process()
  const ran: { readonly input: string; readonly attempt: number; readonly crashes: number }[] = []
  const suspects = { now: 0, most: 0 }
  let dead = false
  process.hf.job({
    name: 'job',
    input: z.string(),
    retry: { crashes: 3 },
    async run({ input, job: { attempt, crashes } }) {
      ran.push({ input, attempt, crashes })
      if (crashes > 0) suspects.most = Math.max(suspects.most, ++suspects.now)
      if (input === 'poison') {
        dead = true
        process.kill()
        await never
      }
      await busy(process.clock, 100)
      if (crashes > 0) suspects.now--
    },
  })
  await process.hf.work(options)
  return { ...process, ran, suspects, isDead: () => dead }
}

async function client(world: VirtualWorld) {
  const process: Process<'default'> = world.process()
  return process.hf.contract({ name: 'job', input: z.string(), retry: { crashes: 3 } })
}

describe('a worker that dies', () => {
  test('has its jobs taken back within its lease and one sweep, and run by another', async () => {
    const world = new VirtualWorld()
    const survivor = await start(world)
    await world.advance(40_000)
    const job = await client(world)
    const victim = await start(world, { concurrency: 50 })
    await survivor.hf.pause('default')
    await survivor.hf.resume('default')
    const { ids } = await job.enqueueMany(Array.from({ length: 20 }, () => 'work'))
    await world.advance(50)
    const taken = victim.told.of('job.started').map((event) => event.id)
    expect(taken.length).toBeGreaterThan(0)
    victim.kill()
    const diedAtMs = world.nowMs
    await world.until(() => survivor.told.of('job.rescued').length === taken.length)
    expect(world.nowMs - diedAtMs).toBeLessThanOrEqual(30_000 + 5_000)
    expect(survivor.told.of('worker.lost')).toMatchObject([{ jobs: taken.length }])
    await world.until(() => survivor.told.of('job.completed').length === ids.length)
    const again = survivor.told.of('job.completed').filter((event) => taken.includes(event.id))
    expect(again.every((event) => event.attempt === 1)).toBe(true)
  })

  test('makes each of its jobs a suspect: run one at a time in a process, beside jobs that are none', async () => {
    const world = new VirtualWorld()
    const job = await client(world)
    await job.enqueueMany(Array.from({ length: 8 }, (_, n) => `suspect ${n}`))
    const victim = await start(world, { concurrency: 8 })
    await world.advance(10)
    expect(victim.ran).toHaveLength(8)
    victim.kill()
    const survivor = await start(world, { concurrency: 8 })
    await world.until(() => survivor.told.of('job.rescued').length === 8)
    await job.enqueueMany(Array.from({ length: 20 }, (_, n) => `plain ${n}`))
    await world.until(() => survivor.told.of('job.completed').length === 28)
    expect(survivor.suspects.most).toBe(1)
    const suspects = survivor.ran.filter(({ input }) => input.startsWith('suspect'))
    expect(suspects.map(({ attempt, crashes }) => [attempt, crashes])).toEqual(suspects.map(() => [1, 1]))
  })

  test('leaves suspects that follow each other at once: none waits for a poll', async () => {
    const world = new VirtualWorld()
    const job = await client(world)
    await job.enqueueMany(Array.from({ length: 8 }, (_, n) => `suspect ${n}`))
    const victim = await start(world, { concurrency: 8 })
    await world.advance(10)
    victim.kill()
    const survivor = await start(world, { concurrency: 8, poll: 3_600_000 })
    await world.until(() => survivor.told.of('job.rescued').length === 8)
    const tookMs = await world.until(() => survivor.told.of('job.completed').length === 8)
    expect(tookMs).toBeLessThan(1_000 + 8 * 110)
  })
})

describe('a poison job', () => {
  test('kills its worker again and again, and is dead after its crashes; the innocent all finish', async () => {
    const world = new VirtualWorld()
    const job = await client(world)
    const { ids } = await job.enqueueMany(['poison', 'a', 'b', 'c', 'd'])
    const [poison, ...innocent] = ids as [string, ...string[]]
    // A supervisor: two processes are always up.
    const fleet = [await start(world), await start(world)]
    const alive = () => fleet.filter((process) => !process.isDead())
    const finished = async (): Promise<boolean> => {
      const records = await Promise.all([...innocent, poison].map((id) => world.record(id)))
      return records.every(({ state }) => state === 'completed' || state === 'dead')
    }
    for (let minutes = 0; minutes < 20 && !(await finished()); minutes++) {
      await world.advance(30_000)
      while (alive().length < 2) fleet.push(await start(world))
    }
    for (const id of innocent)
      expect(await world.record(id)).toMatchObject({ state: 'completed', attempt: 1 })
    expect(await world.record(poison)).toMatchObject({
      state: 'dead',
      crashes: 4,
      error: { kind: 'worker_lost', code: 'HF_WORKER_LOST' },
    })
    expect(fleet.filter((process) => process.isDead())).toHaveLength(4)
  })

  test('that must never run twice says `crashes: 0` and is dead after the first', async () => {
    const world = new VirtualWorld()
    const survivor = await start(world)
    await world.advance(31_000)
    const job = await client(world)
    await survivor.hf.pause('default')
    const victim = await start(world)
    const { id } = await job.enqueue('poison', { retry: { crashes: 0 } })
    await survivor.hf.resume('default')
    await world.until(() => victim.isDead() || survivor.isDead())
    const other = victim.isDead() ? survivor : victim
    await world.until(() => other.told.of('job.rescued').length === 1)
    expect(other.told.of('job.rescued')).toMatchObject([{ id, to: 'dead', crashes: 1 }])
  })
})

describe('a job whose worker died while it was being cancelled', () => {
  test('is cancelled by the rescue and never runs again', async () => {
    const world = new VirtualWorld()
    const survivor = await start(world)
    const gate = deferred()
    const victim = world.process({ queues: { default: {}, own: {} } })
    const job = victim.hf.job({ name: 'deaf', queue: 'own', run: () => gate.promise })
    const handle = await job.enqueue()
    await victim.hf.work({ queues: ['own'] })
    await world.advance(100)
    await handle.cancel('stop')
    victim.kill()
    await world.until(() => survivor.told.of('job.rescued').length === 1)
    expect(survivor.told.of('job.rescued')[0]).toMatchObject({ to: 'cancelled' })
    expect(await world.record(handle.id)).toMatchObject({ state: 'cancelled', reason: 'stop' })
  })
})
