import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { alone } from '../../test/support/virtual.ts'

const input = z.object({ user: z.string(), plan: z.string().optional() })

describe('a unique key', () => {
  test('given by the definition makes a second enqueue a duplicate of the first', async () => {
    const { hf, world, told } = alone()
    const job = hf.job({ name: 'sync', input, unique: ({ user }) => ({ key: user }), run: () => undefined })
    const first = await job.enqueue({ user: 'ada' })
    const again = await job.enqueue({ user: 'ada' })
    const other = await job.enqueue({ user: 'bob' })
    expect([first.duplicate, again.duplicate, other.duplicate]).toEqual([false, true, false])
    expect(again.id).toBe(first.id)
    expect(await world.counts()).toEqual({ ready: 2 })
    expect(told.of('job.enqueued').map((event) => event.duplicate)).toEqual([false, true, false])
  })

  test('given at the enqueue overrides that of the definition', async () => {
    const { hf, world } = alone()
    const job = hf.job({ name: 'sync', input, unique: ({ user }) => ({ key: user }), run: () => undefined })
    await job.enqueue({ user: 'ada' })
    const other = await job.enqueue({ user: 'ada' }, { unique: { key: 'another' } })
    expect(other.duplicate).toBe(false)
    expect(await world.counts()).toEqual({ ready: 2 })
  })

  test('is free again once the job is finished', async () => {
    const { hf, world, told } = alone()
    const job = hf.job({ name: 'sync', input, unique: ({ user }) => ({ key: user }), run: () => undefined })
    await job.enqueue({ user: 'ada' })
    await hf.work()
    await world.until(() => told.of('job.completed').length === 1)
    expect((await job.enqueue({ user: 'ada' })).duplicate).toBe(false)
  })

  test('can be held for a time instead, whatever becomes of the job', async () => {
    const { hf, world, told } = alone()
    const unique = { key: 'k', for: '10m' } as const
    const job = hf.job({ name: 'sync', unique: () => unique, run: () => undefined })
    await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.completed').length === 1)
    expect((await job.enqueue()).duplicate).toBe(true)
    await world.advance(600_000)
    expect((await job.enqueue()).duplicate).toBe(false)
  })

  test('can have its holder take the new input and options', async () => {
    const { hf, world } = alone()
    const job = hf.job({
      name: 'sync',
      input,
      unique: ({ user }) => ({ key: user, onConflict: 'replace' }),
      run: () => undefined,
    })
    const first = await job.enqueue({ user: 'ada', plan: 'free' })
    const second = await job.enqueue({ user: 'ada', plan: 'pro' }, { priority: 'urgent' })
    expect(second).toMatchObject({ id: first.id, duplicate: true })
    expect(await world.record(first.id)).toMatchObject({
      payload: '{"user":"ada","plan":"pro"}',
      priority: 9,
    })
  })

  test('can have its holder move to the new time', async () => {
    const { hf, world } = alone()
    const unique = { key: 'k', onConflict: 'reschedule' } as const
    const job = hf.job({ name: 'debounced', input, unique: () => unique, run: () => undefined })
    const first = await job.enqueue({ user: 'ada' }, { in: '1m' })
    await job.enqueue({ user: 'bob' }, { in: '5m' })
    const record = await world.record(first.id)
    expect(record.dueAt).toBe(world.clock.now() + 300_000)
    expect(record.payload).toBe('{"user":"ada"}')
  })

  test('belongs to the job name: another job may have the same', async () => {
    const { hf } = alone()
    const one = hf.job({ name: 'one', unique: () => ({ key: 'k' }), run: () => undefined })
    const two = hf.job({ name: 'two', unique: () => ({ key: 'k' }), run: () => undefined })
    expect((await one.enqueue()).duplicate).toBe(false)
    expect((await two.enqueue()).duplicate).toBe(false)
  })

  test('is asked for before anything is written: a definition whose function throws refuses the enqueue', async () => {
    const { hf, line } = alone()
    const job = hf.job({
      name: 'broken',
      unique: () => {
        throw new TypeError('no user')
      },
      run: () => undefined,
    })
    await expect(job.enqueue()).rejects.toThrow('no user')
    expect(line.calls).toEqual([])
  })
})

describe('a job enqueued by a handler', () => {
  test('inherits correlation id and metadata, through every generation', async () => {
    const { hf, world, told } = alone()
    const leaf = hf.job({
      name: 'leaf',
      run: ({ job }) => ({ ...job.metadata, correlation: job.correlationId }),
    })
    const middle = hf.job({
      name: 'middle',
      run: async () => void (await leaf.enqueue(undefined, { metadata: { step: 'leaf' } })),
    })
    const root = hf.job({ name: 'root', run: async () => void (await middle.enqueue()) })
    await root.enqueue(undefined, { correlationId: 'request-7', metadata: { tenant: 'acme', step: 'root' } })
    await hf.work()
    await world.until(() => told.of('job.completed').length === 3)
    const ended = told.of('job.completed').find((event) => event.job === 'leaf')!
    expect(ended.correlationId).toBe('request-7')
    expect(JSON.parse(((await world.record(ended.id)) as { result: string }).result)).toEqual({
      tenant: 'acme',
      step: 'leaf',
      correlation: 'request-7',
    })
  })

  test("has its cause's id as correlation id where none was given", async () => {
    const { hf, world, told } = alone()
    const child = hf.job({ name: 'child', input: z.number(), run: () => undefined })
    const parent = hf.job({
      name: 'parent',
      run: async () => {
        await Promise.resolve()
        await child.enqueueMany([1, 2])
        await hf.enqueueMany([child.with(3)])
      },
    })
    const { id } = await parent.enqueue()
    await hf.work()
    await world.until(() => told.of('job.completed').length === 4)
    expect(told.of('job.completed').map((event) => event.correlationId)).toEqual([id, id, id, id])
  })

  test('may say otherwise', async () => {
    const { hf, world, told } = alone()
    const child = hf.job({ name: 'child', run: () => undefined })
    const parent = hf.job({
      name: 'parent',
      run: async () => void (await child.enqueue(undefined, { correlationId: 'own' })),
    })
    await parent.enqueue()
    await hf.work()
    await world.until(() => told.of('job.completed').length === 2)
    expect(told.of('job.completed').find((event) => event.job === 'child')?.correlationId).toBe('own')
  })

  test('leaves what is enqueued outside of handlers alone', async () => {
    const { hf, world, told } = alone()
    const job = hf.job({ name: 'job', run: () => undefined })
    await hf.work()
    const { id } = await job.enqueue(undefined, { correlationId: 'first' })
    await world.until(() => told.about(id).includes('job.completed'))
    const next = await job.enqueue()
    expect((await world.record(next.id)).envelope).toMatchObject({ correlationId: null, metadata: {} })
  })
})
