import { describe, expect, test } from 'vitest'
import type { JobInfo } from './context.ts'
import { runInside, type MiddlewareArgs } from './middleware.ts'

const job = { id: '1', name: 'mail' } as JobInfo
const around = { job: () => job, signal: () => new AbortController().signal }

type Step = (args: MiddlewareArgs<object>) => Promise<unknown>
const run = (chain: readonly Step[], handler: (ctx: object) => unknown): Promise<unknown> =>
  runInside(chain, around, handler)

/** Says when it is entered and left. */
function telling(log: string[], name: string, add?: object): Step {
  return async ({ next }) => {
    log.push(`${name} in`)
    try {
      return await (add === undefined ? next() : next(add))
    } finally {
      log.push(`${name} out`)
    }
  }
}

describe('a handler inside middleware', () => {
  test('runs in the middle, outermost first and last', async () => {
    const log: string[] = []
    const returned = await run([telling(log, 'a'), telling(log, 'b')], () => (log.push('handler'), 'result'))
    expect(log).toEqual(['a in', 'b in', 'handler', 'b out', 'a out'])
    expect(returned).toBe('result')
  })

  test('sees what all of them added; the innermost wins', async () => {
    const seen: object[] = []
    const log: string[] = []
    await run(
      [telling(log, 'a', { user: 1, at: 'a' }), telling(log, 'b'), telling(log, 'c', { at: 'c' })],
      (ctx) => seen.push(ctx),
    )
    expect(seen).toEqual([{ user: 1, at: 'c' }])
  })

  test('shows each of them only what those outside of it added', async () => {
    const seen: object[] = []
    const looking =
      (add: object): Step =>
      ({ ctx, next }) => {
        seen.push(ctx)
        return next(add)
      }
    await run([looking({ a: 1 }), looking({ b: 2 })], (ctx) => seen.push(ctx))
    expect(seen).toEqual([{}, { a: 1 }, { a: 1, b: 2 }])
  })

  test('is given the job and the signal', async () => {
    const seen: unknown[] = []
    await run([(args) => (seen.push(args.job, args.signal), args.next())], () => undefined)
    expect(seen).toEqual([job, expect.any(AbortSignal)])
  })

  test('hands its error out through all of them', async () => {
    const log: string[] = []
    const failing = run([telling(log, 'a'), telling(log, 'b')], () => Promise.reject(new Error('failed')))
    await expect(failing).rejects.toThrow('failed')
    expect(log).toEqual(['a in', 'b in', 'b out', 'a out'])
  })

  test('is not run where a middleware throws before', async () => {
    let ran = false
    const failing = run([() => Promise.reject(new Error('no user'))], () => (ran = true))
    await expect(failing).rejects.toThrow('no user')
    expect(ran).toBe(false)
  })

  test('cannot be run twice by one middleware', async () => {
    let runs = 0
    const twice: Step = async ({ next }) => {
      await next()
      return next()
    }
    await expect(run([twice], () => runs++)).rejects.toThrow('next() was called twice in one middleware.')
    expect(runs).toBe(1)
  })

  test.each<[string, Step]>([
    ['returns without next()', () => Promise.resolve()],
    ['does not wait for next()', ({ next }) => (next().catch(() => undefined), Promise.resolve())],
    ['swallows the error of the handler', ({ next }) => next().catch(() => undefined)],
  ])('is not taken for completed where a middleware %s', async (_, step) => {
    const failing = run([step], () => Promise.reject(new Error('failed')))
    await expect(failing).rejects.toMatchObject({
      code: 'HF_BAD_JOB',
      message: 'A middleware returned although the handler has not.',
    })
  })

  test('may return nothing, which is a result too', async () => {
    expect(await run([({ next }) => next()], () => undefined)).toBeUndefined()
  })

  test('needs none', async () => {
    expect(await run([], (ctx) => ({ ctx }))).toEqual({ ctx: {} })
  })
})
