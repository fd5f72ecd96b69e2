/** What we use of `ioredis`, by structure: it is installed only where this store is used. Version 5.4.1 or newer. */
import { HoldfastError } from '../../errors.ts'

export type RedisValue = string | number

export interface RedisClient {
  readonly status: string
  /** Not in its documentation; the socket. */
  readonly stream?: RedisSocket
  connect(): Promise<unknown>
  call(command: string, args: readonly RedisValue[]): Promise<unknown>
  subscribe(channel: string): Promise<unknown>
  ping(): Promise<unknown>
  quit(): Promise<unknown>
  disconnect(): void
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'end', listener: () => void): unknown
  on(event: 'message', listener: (channel: string, text: string) => void): unknown
}

export interface RedisSocket {
  /** An idle one need not hold up the end of a process. */
  ref?(): unknown
  unref?(): unknown
  readonly bytesRead?: number
  /** What it has taken and not handed on yet. */
  readonly writableLength?: number
  readonly destroyed?: boolean
  destroy?(): unknown
}

export interface RedisModule {
  readonly Redis: RedisConstructor
}

interface RedisConstructor {
  new (options: ClientOptions): RedisClient
  new (url: string, options: ClientOptions): RedisClient
}

/** All that is passed to ioredis: what leads to the server, and what we need it to do. */
export type ClientOptions = Readonly<Record<string, unknown>>

export async function loadIoredis(): Promise<RedisModule> {
  try {
    return (await import('ioredis')) as unknown as RedisModule
  } catch (cause) {
    throw new HoldfastError(
      'HF_BAD_STORE',
      'The Redis store needs the package ioredis, which does not load.',
      {
        hint: 'Install it: npm install ioredis.',
        cause,
      },
    )
  }
}
