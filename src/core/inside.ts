/** Runs a step inside code of others that must not be able to change it. */
import { isThenable } from '../std/thenable.ts'

/** Calls `enter` once, before it returns. What it returns itself is of no interest. */
export type Layer = (enter: () => void) => unknown

/**
 * Runs `work` inside the layers, the first outermost, and gives back or throws what `work` did. It runs exactly once: a
 * layer that does not enter, or enters too late, is passed over, and entering twice has no effect. `failed` hears what a
 * layer throws or is rejected with.
 */
export function inside<T>(layers: readonly Layer[], work: () => T, failed: (error: unknown) => void): T {
  let ended: (() => T) | undefined
  const enter = (depth: number): void => {
    const layer = layers[depth]
    if (layer === undefined) {
      ended = endOf(work)
      return
    }
    let entered = false
    const enterOnce = (): void => {
      if (entered) return
      entered = true
      enter(depth + 1)
    }
    hear(() => layer(enterOnce), failed)
    enterOnce()
  }
  enter(0)
  return (ended as unknown as () => T)()
}

/** Calls it, and reports what it throws or its promise is rejected with. Returns what it returned. */
export function hear<T>(call: () => T, failed: (error: unknown) => void): T | undefined {
  try {
    const returned = call()
    if (isThenable(returned)) Promise.resolve(returned).catch(failed)
    return returned
  } catch (error) {
    failed(error)
    return undefined
  }
}

function endOf<T>(work: () => T): () => T {
  try {
    const returned = work()
    return () => returned
  } catch (error) {
    return () => {
      throw error
    }
  }
}
