/** What a thrown value means for the job, and the record that is kept of it. Never throws, whatever was thrown. */
import {
  Aborted,
  DependencyDown,
  Fatal,
  HoldfastError,
  ResourcesExhausted,
  type ErrorCode,
} from '../errors.ts'
import { describeError } from '../std/text.ts'
import { fingerprintOf } from './fingerprint.ts'

/**
 * transient → retry · permanent → dead letter at once · dependency_down → parked, no attempt used ·
 * resources_exhausted → backed off further, worker slows down · timeout, cancelled, lease_lost, worker_lost → what
 * happened to the attempt rather than in it.
 */
export type FailureKind =
  | 'transient'
  | 'permanent'
  | 'dependency_down'
  | 'resources_exhausted'
  | 'timeout'
  | 'cancelled'
  | 'lease_lost'
  | 'worker_lost'

/** One attempt's error as it is stored: cleaned, bounded, and safe to show. */
export interface AttemptError {
  readonly kind: FailureKind
  readonly name: string
  readonly message: string
  readonly code: string | null
  readonly stack: string | null
  /** Equal for errors that differ only in ids, numbers and paths. */
  readonly fingerprint: string
  readonly attempt: number
}

const EXHAUSTED_CODES: ReadonlySet<unknown> = new Set([
  'ENOMEM',
  'ENOSPC',
  'EDQUOT',
  'EMFILE',
  'ENFILE',
  'ERR_WORKER_OUT_OF_MEMORY',
])

/** Errors that the same code would raise again at any time. */
const PERMANENT_CODES: ReadonlySet<ErrorCode> = new Set([
  'HF_INVALID_INPUT',
  'HF_INVALID_OUTPUT',
  'HF_STORE_REFUSED',
])

export function classify(thrown: unknown): FailureKind {
  try {
    return kindOf(thrown)
  } catch {
    // A proxy can throw even from instanceof.
    return 'transient'
  }
}

function kindOf(thrown: unknown): FailureKind {
  if (thrown instanceof Fatal) return 'permanent'
  if (thrown instanceof DependencyDown) return 'dependency_down'
  if (thrown instanceof ResourcesExhausted) return 'resources_exhausted'
  if (thrown instanceof Aborted) return KIND_OF_ABORT[thrown.why]
  if (thrown instanceof HoldfastError) {
    if (thrown.code === 'HF_ATTEMPT_TIMEOUT') return 'timeout'
    return PERMANENT_CODES.has(thrown.code) ? 'permanent' : 'transient'
  }
  return EXHAUSTED_CODES.has((thrown as { code?: unknown } | null | undefined)?.code)
    ? 'resources_exhausted'
    : 'transient'
}

const KIND_OF_ABORT = {
  timeout: 'timeout',
  cancelled: 'cancelled',
  lease_lost: 'lease_lost',
  // A handler that rethrows the shutdown's abort reason was interrupted, it did not fail: it may run again.
  shutdown: 'transient',
} as const

export function attemptError(
  thrown: unknown,
  attempt: number,
  kind: FailureKind = classify(thrown),
): AttemptError {
  const described = describeError(thrown)
  return { kind, ...described, fingerprint: fingerprintOf(described), attempt }
}

/** The part of an error that the record of an attempt keeps. */
export function recordedError(error: AttemptError): Omit<AttemptError, 'stack' | 'attempt'> {
  const { kind, name, message, code, fingerprint } = error
  return { kind, name, message, code, fingerprint }
}
