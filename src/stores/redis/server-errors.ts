/** What an error of the server or of the way to it means for us. */
import { HoldfastError } from '../../errors.ts'

/** The server said it, so that nothing was written; anything else may mean that only the answer was lost. */
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

/** Passes by itself: starting up, a failover, a script of somebody else, no disk to write to. */
const TRANSIENT = [
  'LOADING',
  'READONLY',
  'MASTERDOWN',
  'CLUSTERDOWN',
  'TRYAGAIN',
  'BUSY',
  'MISCONF',
  'NOREPLICAS',
]
const FORBIDDEN = ['NOAUTH', 'WRONGPASS', 'NOPERM']

/** As people should see it; what the caller takes for an outage is HF_STORE_UNREACHABLE. */
export function explain(error: unknown): Error {
  if (error instanceof HoldfastError) return error
  if (!isReply(error)) {
    const why = error instanceof Error ? error.message : String(error)
    return unreachable(`The connection to Redis failed: ${why}`, error)
  }
  if (has(error, 'OOM'))
    return new HoldfastError('HF_STORE_FULL', 'Redis is full: it takes no new jobs.', { cause: error })
  if (FORBIDDEN.some((code) => has(error, code))) {
    return new HoldfastError('HF_BAD_STORE', `Redis does not let us in: ${error.message}`, {
      hint: 'Check user and password, and that the user may run scripts on all keys and channels of the prefix.',
      cause: error,
    })
  }
  if (/cluster support disabled/i.test(error.message)) return notACluster(error)
  if (TRANSIENT.some((code) => has(error, code))) return unreachable(`Redis said: ${error.message}`, error)
  return error
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
