/** What both peers need. */
import type { EnqueueOptions } from '../../contest/child/contender.ts'
import { NORMAL } from '../../contest/protocol.ts'

export const QUEUE = 'noop'

export function addressOf(url: string): { readonly host: string; readonly port: number } {
  const { hostname, port } = new URL(url)
  return { host: hostname, port: Number(port) }
}

/** No scenario that the peers run asks for more, and bee-queue knows no priorities: better refused than left out. */
export function refuseSpecial({ level, delayMs }: EnqueueOptions): void {
  if (level !== NORMAL || delayMs !== 0) throw new Error('The peers on Redis get neither levels nor delays.')
}

/** For their error events: a bench that goes on without its server measures nothing. */
export function raise(error: Error): never {
  throw error
}
