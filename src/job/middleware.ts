/** Code around every handler: each middleware may add to the context, and sees the result or the error. */
import { HoldfastError } from '../errors.ts'
import type { JobInfo } from './context.ts'

declare const added: unique symbol
/** Proof that a middleware called next(), and what it added to the context. */
export interface Next<Added> {
  readonly [added]: Added
}

export interface MiddlewareArgs<Ctx> {
  readonly ctx: Ctx
  readonly job: JobInfo
  readonly signal: AbortSignal
  /**
   * Runs the rest of the chain, once; the argument is added to the context of everything that follows. `return next()`,
   * or await it and return its result: an attempt counts as completed only if its handler ran to the end, so a
   * middleware that returns without calling it fails the attempt. To refuse a job, throw: Fatal, RetryIn and
   * DependencyDown decide what happens to it.
   */
  readonly next: {
    (): Promise<Next<object>>
    <Added extends object>(add: Added): Promise<Next<Added>>
  }
}

export type Middleware = (args: MiddlewareArgs<object>) => Promise<unknown>

interface Around {
  readonly job: () => JobInfo
  readonly signal: () => AbortSignal
}

const NOT_RUN = Symbol('the handler has not returned')

/** Runs `handler` inside the chain, outermost first, and returns the handler's result. */
export async function runInside(
  chain: readonly Middleware[],
  around: Around,
  handler: (ctx: object) => unknown,
): Promise<unknown> {
  let returned: unknown = NOT_RUN
  const enter = async (depth: number, ctx: object): Promise<unknown> => {
    const middleware = chain[depth]
    if (middleware === undefined) {
      returned = await handler(ctx)
      return undefined
    }
    let entered = false
    return middleware({
      ctx,
      get job() {
        return around.job()
      },
      get signal() {
        return around.signal()
      },
      next: (async (add?: object) => {
        if (entered) throw new Error('next() was called twice in one middleware.')
        entered = true
        return enter(depth + 1, add === undefined ? ctx : { ...ctx, ...add })
      }) as MiddlewareArgs<object>['next'],
    })
  }
  await enter(0, {})
  if (returned === NOT_RUN) {
    throw new HoldfastError('HF_BAD_JOB', 'A middleware returned although the handler has not.', {
      hint: 'End each middleware with `return next()`, or throw to refuse the job.',
    })
  }
  return returned
}
