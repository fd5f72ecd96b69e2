/** What the main thread and the thread that owns the connection tell each other. */
import type { MessagePort } from 'node:worker_threads'
import { HoldfastError, type ErrorCode } from '../../../errors.ts'
import { asError } from '../../../std/clock.ts'
import type { SqlTexts } from '../engine/db.ts'
import type { StepName } from '../engine/steps.ts'
import type { Durability } from '../open-database.ts'
import type { WakeUp } from '../../store.ts'

/** What a store is made of. */
export interface StoreData {
  readonly directory: string
  readonly durability: Durability
  /** For tests, see `shared-clock.ts`: a clock that another thread can set. */
  readonly clock: SharedArrayBuffer | null
  /** For tests: maximum number of jobs that a list looks at. */
  readonly maxLook: number | null
  /** For tests: other SQL than that of the files. */
  readonly sql: SqlTexts | null
}

/** What the thread is started with. */
export interface ThreadData extends StoreData {
  /** Whether another store of this process has the directory open. */
  readonly isOpenHere: boolean
}

export type ToStore =
  /** Arguments and answers as in `tuples.ts`. */
  | { readonly type: 'call'; readonly id: number; readonly name: StepName; readonly args: readonly unknown[] }
  /** Whether there are listeners for changes by other processes. */
  | { readonly type: 'listen'; readonly on: boolean }
  /** Renews leases while the main loop is blocked: see `../../pulse/keeper.ts`, which reads this port. */
  | { readonly type: 'pulse'; readonly port: MessagePort }
  | { readonly type: 'close' }

export type Answer =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: SentError }

export type FromStore =
  | { readonly type: 'opened' }
  | { readonly type: 'failed'; readonly error: SentError }
  | { readonly type: 'notice'; readonly line: string }
  | { readonly type: 'answers'; readonly answers: readonly Answer[]; readonly hints: readonly WakeUp[] }
  | { readonly type: 'hints'; readonly hints: readonly WakeUp[] }

/** An error as it travels: copying one between threads loses its class. */
export interface SentError {
  readonly code: ErrorCode | null
  readonly message: string
  readonly hint: string
  readonly stack: string | undefined
}

export function sendError(thrown: unknown): SentError {
  const error = asError(thrown)
  const { message, stack } = error
  if (!(error instanceof HoldfastError)) return { code: null, message, hint: '', stack }
  return { code: error.code, message, hint: error.hint, stack }
}

export function receiveError({ code, message, hint, stack }: SentError): Error {
  const error = code === null ? new Error(message) : new HoldfastError(code, message, { hint })
  if (stack !== undefined) error.stack = stack
  return error
}
