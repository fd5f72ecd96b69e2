/** The part of `ioredis` (5.4.1 or newer) that we use, by structure: it is installed only if this store is used. */
import { HoldfastError } from '../../errors.ts'

export type RedisValue = string | number

export interface RedisClient {
  readonly status: string
  /** The socket; undocumented. */
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
  /** An idle connection must not keep the process alive. */
  ref?(): unknown
  unref?(): unknown
  readonly bytesRead?: number
  /** Bytes that it has accepted and not passed on yet. */
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

/** Options for ioredis: how to reach the server, and how we need it to behave. */
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
