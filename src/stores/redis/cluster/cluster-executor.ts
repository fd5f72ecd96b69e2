/**
 * Scripts over a cluster: each goes to the node that has the hash slot of its keys. Nothing is sent again that may have been
 * carried out; a redirection says that it was not. While a hash slot moves from one node to another its scripts wait (see
 * `queue-shards.ts` for why they must), for as long as any call may take.
 */
import { HoldfastError } from '../../../errors.ts'
import { sleep, type Clock } from '../../../std/clock.ts'
import type { RedisValue } from '../driver.ts'
import type { Executor } from '../executor.ts'
import type { Script } from '../scripts.ts'
import { isReply, unreachable } from '../server-errors.ts'
import { hashSlotOf } from './hash-slots.ts'
import type { Topology } from './topology.ts'

const MOVING_PAUSE_MS = 25

export class ClusterExecutor implements Executor {
  readonly #topology: Topology
  readonly #clock: Clock
  readonly #timeoutMs: number
  readonly #hashSlots = new Map<string, number>()

  constructor(topology: Topology, clock: Clock, timeoutMs: number) {
    this.#topology = topology
    this.#clock = clock
    this.#timeoutMs = timeoutMs
  }

  /** On any node: for what belongs to no key. */
  async command(name: string, args: readonly RedisValue[]): Promise<unknown> {
    const [node] = await this.#topology.primaries()
    if (node === undefined) throw unreachable('The cluster has no node that serves anything.')
    return node.command(name, args)
  }

  async script(
    script: Script,
    keys: readonly string[],
    args: readonly RedisValue[],
    withinMs = Infinity,
  ): Promise<unknown> {
    const hashSlot = this.#hashSlotOf(keys[0] ?? '')
    const begunMs = this.#clock.monotonicMs()
    const deadline = begunMs + Math.min(this.#timeoutMs, withinMs)
    for (;;) {
      const node = await this.#topology.primaryOf(hashSlot)
      try {
        return await node.script(script, keys, args, begunMs + withinMs - this.#clock.monotonicMs())
      } catch (error) {
        const code = redirectionOf(error)
        // A node that does not answer may have been replaced; one that refuses is the right one.
        if (code === 'MOVED' || (code === null && isUnreachable(error))) this.#topology.forget()
        if (code === null) throw error
        if (this.#clock.monotonicMs() > deadline)
          throw unreachable(
            `Hash slot ${hashSlot} of the cluster is still moving after ${Math.round(this.#clock.monotonicMs() - begunMs)} ms.`,
            error,
          )
        await sleep(this.#clock, MOVING_PAUSE_MS)
      }
    }
  }

  refuseWhenClosed(): void {
    this.#topology.refuseWhenClosed()
  }

  close(): Promise<void> {
    return this.#topology.close()
  }

  #hashSlotOf(key: string): number {
    const known = this.#hashSlots.get(key) ?? hashSlotOf(key)
    this.#hashSlots.set(key, known)
    return known
  }
}

function isUnreachable(error: unknown): boolean {
  return error instanceof HoldfastError && error.code === 'HF_STORE_UNREACHABLE'
}

/** How a node says that it did not do it, because the hash slot is elsewhere or on its way. */
function redirectionOf(error: unknown): 'MOVED' | 'ASK' | 'TRYAGAIN' | null {
  const reply = isReply(error) ? error : error instanceof Error ? error.cause : undefined
  if (!isReply(reply)) return null
  const [code] = reply.message.split(' ')
  return code === 'MOVED' || code === 'ASK' || code === 'TRYAGAIN' ? code : null
}
