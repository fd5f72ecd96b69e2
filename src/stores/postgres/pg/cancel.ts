/**
 * Asks the server to stop what a connection is doing, by the protocol's own cancel request. A connection that is merely
 * cut leaves its statement running, or waiting for a lock, for as long as that takes: each try would add one.
 */
import { connect } from 'node:net'
import type { Clock } from '../../../std/clock.ts'
import type { OwnClient } from './driver.ts'

const CANCEL_MS = 2_000
const CANCEL_CODE = 80_877_102

/**
 * Best effort: resolves once the request was sent or given up. In plain text even if the connection uses TLS, which the
 * server accepts.
 */
export function cancelRunning(clock: Clock, client: OwnClient): Promise<void> {
  const { host, port, processID, secretKey } = client
  if (processID === null || secretKey === null) return Promise.resolve()
  const message = Buffer.alloc(16)
  message.writeInt32BE(16, 0)
  message.writeInt32BE(CANCEL_CODE, 4)
  message.writeInt32BE(processID, 8)
  message.writeInt32BE(secretKey, 12)
  return new Promise((resolve) => {
    const socket = connect(host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port })
    const cancel = clock.after(CANCEL_MS, () => socket.destroy())
    socket.on('error', () => undefined)
    socket.on('connect', () => socket.end(message))
    // The server closes the connection without an answer.
    socket.on('close', () => {
      cancel()
      resolve()
    })
    socket.resume()
  })
}
