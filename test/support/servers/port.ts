import { once } from 'node:events'
import { createServer } from 'node:net'

// Below what Linux (32768) and macOS (49152) hand to outgoing connections: a server that is down for a moment must find
// its port free again, and a client that tries a port of that range on its own machine can even connect to itself.
const FIRST = 15_000
const LAST = 30_000

/** Free a moment ago: who starts a server on it still tries another where it is taken. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 100; tries++) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST))
    if (await isFree(port)) return port
  }
  throw new Error(`No free port found between ${FIRST} and ${LAST}.`)
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
    return true
  } catch {
    return false
  } finally {
    server.close()
  }
}
