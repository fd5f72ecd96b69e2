/** How a command ends: exit codes, and how the process exits. */
import { HoldfastError, type ErrorOptions } from '../errors.ts'

export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  unreachable: 5,
  interrupted: 130,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** The file is missing, as opposed to one that does not load. */
export class ModuleMissing extends HoldfastError {
  constructor(message: string, options?: ErrorOptions) {
    super('HF_BAD_MODULE', message, options)
  }
}

export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof ModuleMissing) return EXIT.notFound
  switch (codeOf(error)) {
    case 'HF_BAD_OPTION':
    case 'HF_UNKNOWN_QUEUE':
      return EXIT.usage
    case 'HF_JOB_NOT_FOUND':
      return EXIT.notFound
    case 'HF_STORE_UNREACHABLE':
    case 'HF_STORE_DENIED':
    case 'HF_STORE_MISSING':
    case 'HF_STORE_FULL':
    case 'HF_STORE_LOCKED':
    case 'HF_STORE_DAMAGED':
      return EXIT.unreachable
    default:
      return EXIT.failed
  }
}

/** By shape, not by class: a module may bring its own copy of the library. */
export function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code
  return typeof code === 'string' && code.startsWith('HF_') ? code : undefined
}
