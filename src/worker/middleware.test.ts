import { describe, expect, test } from 'vitest'
import { Fatal } from '../errors.ts'
import type { Next } from '../job/middleware.ts'
import { alone } from '../../test/support/virtual.ts'

describe('middleware', () => {
  test('adds to the context, each seeing what those before it added', async () => {
    const { hf, world } = alone()
    const withDb = hf.use(({ next }) => next({ db: 'pg' }))
    const withUser = withDb.use(({ ctx, next }) => next({ user: `${ctx.db}:ada` }))
    const job = withUser.job({ name: 'who', run: ({ ctx }) => `${ctx.db} ${ctx.user}` })
    const handle = await job.enqueue()
    await hf.work()
    expect(await world.run(handle.result())).toBe('pg pg:ada')
  })

  test('stands around the handler: outermost in first and out last', async () => {
    const { hf, world } = alone()
    const steps: string[] = []
    const around = (name: string) =>
      async function <N>({ next }: { next: () => Promise<N> }): Promise<N> {
        steps.push(`${name} in`)
        const done = await next()
        steps.push(`${name} out`)
        return done
      }
    const job = hf
      .use(around('a'))
      .use(around('b'))
      .job({ name: 'job', run: () => void steps.push('run') })
    const handle = await job.enqueue()
    await hf.work()
    await world.run(handle.result())
    expect(steps).toEqual(['a in', 'b in', 'run', 'b out', 'a out'])
  })

  test('is only around jobs defined through it', async () => {
    const { hf, world } = alone()
    let entered = 0
    const wrapped = hf.use(({ next }) => {
      entered++
      return next()
    })
    const plain = hf.job({ name: 'plain', run: ({ ctx }) => Object.keys(ctx) })
    const inside = wrapped.job({ name: 'inside', run: () => undefined })
    await hf.work()
    expect(await world.run((await plain.enqueue()).result())).toEqual([])
    expect(entered).toBe(0)
    await world.run((await inside.enqueue()).result())
    expect(entered).toBe(1)
  })

  test('knows the job and its signal', async () => {
    const { hf, world, told } = alone()
    const seen: unknown[] = []
    const job = hf
      .use(({ job: about, signal, next }) => {
        seen.push(about.name, about.attempt, about.tags, signal.aborted)
        return next()
      })
      .job({ name: 'tagged', run: () => undefined })
    await job.enqueue(undefined, { tags: ['t'] })
    await hf.work()
    await world.until(() => told.of('job.completed').length === 1)
    expect(seen).toEqual(['tagged', 1, ['t'], false])
  })

  test('sees the error of the handler pass, and may put another in its place', async () => {
    const { hf, world, told } = alone()
    const seen: unknown[] = []
    const job = hf
      .use(async ({ next }) => {
        try {
          return await next()
        } catch (error) {
          throw new Fatal('refused for good', { cause: error })
        }
      })
      .use(async ({ next }) => {
        try {
          return await next()
        } catch (error) {
          seen.push((error as Error).message)
          throw error
        }
      })
      .job({
        name: 'broken',
        run: () => {
          throw new Error('from the handler')
        },
      })
    await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.failed').length === 1)
    expect(seen).toEqual(['from the handler'])
    expect(told.of('job.failed')[0]).toMatchObject({ final: true, error: { message: 'refused for good' } })
  })

  test('can refuse a job by throwing, and the handler does not run', async () => {
    const { hf, world, told } = alone()
    let runs = 0
    const job = hf
      .use(() => Promise.reject(new Fatal('not allowed')))
      .job({ name: 'job', run: () => void runs++ })
    await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.failed').length === 1)
    expect(runs).toBe(0)
  })
})

describe('a middleware without the end of next()', () => {
  const notRun = { error: { code: 'HF_BAD_JOB', message: expect.stringMatching(/handler has not/) } }

  test('that returns without calling it fails the attempt: the job never looks completed', async () => {
    const { hf, world, told } = alone()
    let runs = 0
    const job = hf
      .use(() => Promise.resolve() as unknown as Promise<Next<object>>)
      .job({ name: 'skipped', retry: { attempts: 2 }, run: () => void runs++ })
    const handle = await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.failed').length === 2)
    expect(runs).toBe(0)
    expect(told.of('job.failed')).toMatchObject([
      { final: false, ...notRun },
      { final: true, ...notRun },
    ])
    expect(await handle.state()).toBe('dead')
  })

  test('that swallows the error of the handler fails the attempt', async () => {
    const { hf, world, told } = alone()
    const job = hf
      .use(async ({ next }) => {
        try {
          return await next()
        } catch {
          return undefined as unknown as Next<object>
        }
      })
      .job({
        name: 'swallowed',
        run: () => {
          throw new Error('boom')
        },
      })
    await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.failed').length === 1)
    expect(told.of('job.failed')[0]).toMatchObject(notRun)
  })

  test('that calls it twice fails the attempt, and the handler has run once', async () => {
    const { hf, world, told } = alone()
    let runs = 0
    const job = hf
      .use(async ({ next }) => {
        await next()
        return next()
      })
      .job({ name: 'twice', retry: { attempts: 1 }, run: () => void runs++ })
    await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.failed').length === 1)
    expect(runs).toBe(1)
    expect(told.of('job.failed')[0]?.error.message).toMatch(/next\(\) was called twice/)
  })
})
