/** Code around every handler: each middleware may add to the context, and sees the result or the error come back. */
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
  /** Runs the rest. What is given here is added to the context of all that follow. */
  next(): Promise<Next<object>>
  next<Added extends object>(add: Added): Promise<Next<Added>>
}

export type Middleware = (args: MiddlewareArgs<object>) => Promise<unknown>

interface Around {
  readonly job: () => JobInfo
  readonly signal: () => AbortSignal
}

/** Runs `handler` inside the chain, outermost first, and gives back what the handler returned. */
export async function runInside(
  chain: readonly Middleware[],
  around: Around,
  handler: (ctx: object) => unknown,
): Promise<unknown> {
  let returned: unknown
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
  return returned
}
