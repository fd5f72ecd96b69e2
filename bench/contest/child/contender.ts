/** What each library must be able to do, in the words of the bench. */
import type { Level, Payload } from '../protocol.ts'

export type Handler = (payload: Payload) => void | Promise<void>

export interface EnqueueOptions {
  readonly level: Level
  readonly delayMs: number
}

export interface Library {
  /** Makes schema and queue; safe to call again. */
  open(): Promise<void>
  /** All of them, as fast as this library can. */
  enqueueMany(payloads: readonly Payload[], options: EnqueueOptions): Promise<void>
  enqueue(payload: Payload, options: EnqueueOptions): Promise<void>
  /** Starts a worker; resolves, once it is up, to how to stop it. */
  work(handler: Handler, concurrency: number | undefined): Promise<() => Promise<void>>
  /** Starts a worker and enqueues a job; resolves once that is completed. */
  runFirstJob?(handler: Handler): Promise<void>
  close(): Promise<void>
}

/** Calls `send` for slices of the list, a few at a time. */
export async function inSlices<T>(
  list: readonly T[],
  { size, atOnce }: { readonly size: number; readonly atOnce: number },
  send: (slice: T[]) => Promise<unknown>,
): Promise<void> {
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < list.length) {
      const from = next
      next += size
      await send(list.slice(from, from + size))
    }
  }
  await Promise.all(Array.from({ length: atOnce }, lane))
}

/** A package of bench/node_modules, typed by what we use of it: the types need no install. */
export async function load<T>(name: string): Promise<T> {
  return (await import(name)) as T
}
