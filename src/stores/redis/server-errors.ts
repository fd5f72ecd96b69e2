/** Converts errors of the server and of the connection. */
import { HoldfastError } from '../../errors.ts'
import { isProgrammingError } from '../../std/programming-error.ts'
import { messageOf, toError } from '../../std/text.ts'

/** Whether the server answered with an error. With any other error the call may have been carried out. */
export function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError'
}

export function isUnknownScript(error: unknown): boolean {
  return isReply(error) && error.message.startsWith('NOSCRIPT')
}

/** A server that has become read-only is a demoted primary: the next connection should look for the new one. */
export function endsConnection(error: unknown): boolean {
  return isReply(error) && has(error, 'READONLY')
}

/** Temporary: startup, a failover, another client's script, too few replicas. */
const TRANSIENT = ['LOADING', 'READONLY', 'MASTERDOWN', 'CLUSTERDOWN', 'TRYAGAIN', 'BUSY', 'NOREPLICAS']
const DENIED = ['NOAUTH', 'WRONGPASS', 'NOPERM']

/** Convert an error of the driver to one that says what to do; a lost connection becomes HF_STORE_UNREACHABLE. */
export function explain(error: unknown): Error {
  if (error instanceof HoldfastError) return error
  if (!isReply(error)) {
    // A bug of ours is no outage.
    if (isProgrammingError(error)) return toError(error)
    return unreachable(`The connection to Redis failed: ${messageOf(error)}`, error)
  }
  return full(error) ?? permanent(error) ?? transient(error) ?? failedScript(error) ?? error
}

function full(cause: Error): HoldfastError | null {
  if (has(cause, 'OOM')) {
    return new HoldfastError('HF_STORE_FULL', 'Redis has no memory left (maxmemory): it takes no new jobs.', {
      hint: 'Give Redis more memory (maxmemory), or keep finished jobs for less long; what workers finish makes room.',
      cause,
    })
  }
  if (!has(cause, 'MISCONF')) return null
  return new HoldfastError('HF_STORE_FULL', `Redis cannot write to its disk: ${cause.message}`, {
    hint: "Free space on the server's disk, or correct what its log says about saving; workers lose nothing and try again.",
    cause,
  })
}

/** Errors that every further try would get as well. */
function permanent(cause: Error): HoldfastError | null {
  const { message } = cause
  if (DENIED.some((code) => has(cause, code))) {
    return new HoldfastError('HF_STORE_DENIED', `Redis denied access: ${message}`, {
      hint: 'Check user and password, and that the user may run scripts on all keys and channels of the prefix.',
      cause,
    })
  }
  if (/DB index is out of range|invalid DB index/i.test(message))
    return noDatabase(`Redis answered: ${message}`, cause)
  if (has(cause, 'HFREFUSED') || /maximum allowed size|invalid bulk length/i.test(message))
    return new HoldfastError('HF_STORE_REFUSED', `Redis refused a value: ${message}`, { cause })
  if (has(cause, 'WRONGTYPE')) {
    return new HoldfastError('HF_BAD_STORE', `A key of this store holds something else: ${message}`, {
      hint: 'Another program uses the same keys: choose another `prefix`, or another database.',
      cause,
    })
  }
  return /cluster support disabled/i.test(message) ? notACluster(cause) : null
}

function transient(cause: Error): HoldfastError | null {
  return TRANSIENT.some((code) => has(cause, code))
    ? unreachable(`Redis answered: ${cause.message}`, cause)
    : null
}

/**
 * How the server's error begins or ends if a script itself failed; "Script killed" means that an administrator ended
 * it.
 */
const SCRIPT_FAILED = /\buser_script:\d+|^ERR Error (running|compiling) script/
const SCRIPT_STOPPED = /Script killed/i

/** A script of ours failed, and would fail again: it found data that it cannot have written, or has a bug. */
function failedScript(cause: Error): HoldfastError | null {
  const { message } = cause
  if (has(cause, 'HFBROKEN')) {
    const found = /HFBROKEN (.*?)( script: |$)/s.exec(message)?.[1] ?? message
    return new HoldfastError('HF_STORE_CONTRACT', `The data in Redis is inconsistent: ${found}`, {
      hint: 'Something other than Holdfast changed keys of this prefix, or Redis lost part of its data: restore it from a backup, or start over with another prefix.',
      cause,
    })
  }
  if (!SCRIPT_FAILED.test(message) || SCRIPT_STOPPED.test(message)) return null
  return new HoldfastError('HF_STORE_CONTRACT', `A script failed in Redis: ${message}`, {
    hint: 'Something other than Holdfast changed keys of this prefix, or this is a bug in Holdfast: report it with this message.',
    cause,
  })
}

export function noDatabase(message: string, cause?: unknown): HoldfastError {
  return new HoldfastError('HF_STORE_MISSING', message, {
    hint: 'Use a database that the server has (16 by default: /0 to /15), or raise `databases` in its configuration.',
    ...(cause === undefined ? {} : { cause }),
  })
}

/** Older servers wrap the error of a command inside a script into one of their own. */
function has({ message }: Error, code: string): boolean {
  return message.startsWith(`${code} `) || message.includes(`-${code} `) || message.includes(`: ${code} `)
}

export function unreachable(message: string, cause?: unknown): HoldfastError {
  return new HoldfastError('HF_STORE_UNREACHABLE', message, cause === undefined ? {} : { cause })
}

export function notACluster(cause?: unknown): HoldfastError {
  return new HoldfastError('HF_BAD_STORE', 'The server is not part of a Redis Cluster.', {
    hint: "Leave that out of the URL: 'redis://host:6379'.",
    ...(cause === undefined ? {} : { cause }),
  })
}

export function closed(): HoldfastError {
  return new HoldfastError('HF_CLOSED', 'The Redis store is closed.')
}
