/** What the main thread and the thread that owns the connection tell each other. */
import type { MessagePort } from 'node:worker_threads'
import { HoldfastError, type ErrorCode } from '../../../errors.ts'
import { isProgrammingError } from '../../../std/programming-error.ts'
import { toError } from '../../../std/text.ts'
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

export type ToStore =
  /** Arguments and answers as in `tuples.ts`. */
  | { readonly type: 'call'; readonly id: number; readonly name: StepName; readonly args: readonly unknown[] }
  /** Whether somebody listens for what other processes change. `late`: and did so before this thread was there. */
  | { readonly type: 'listen'; readonly on: boolean; readonly late: boolean }
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

/** An error as it travels: copying one between threads loses its class, by which a bug is told from an outage. */
export interface SentError {
  readonly code: ErrorCode | null
  readonly message: string
  readonly hint: string
  readonly stack: string | undefined
}

const BUG_HINT = 'This is a bug in the embedded store: report it with this message and the stack.'

export function sendError(thrown: unknown): SentError {
  const error = toError(thrown)
  const { name, message, stack } = error
  if (isProgrammingError(error))
    return { code: 'HF_STORE_CONTRACT', message: `${name}: ${message}`, hint: BUG_HINT, stack }
  if (!(error instanceof HoldfastError)) return { code: null, message, hint: '', stack }
  return { code: error.code, message, hint: error.hint, stack }
}

export function receiveError({ code, message, hint, stack }: SentError): Error {
  const error = code === null ? new Error(message) : new HoldfastError(code, message, { hint })
  if (stack !== undefined) error.stack = stack
  return error
}
