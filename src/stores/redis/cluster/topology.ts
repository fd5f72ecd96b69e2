/** Which node of a cluster has which hash slot, as the nodes report it, and a connection to each node. */
import type { ClientOptions } from '../driver.ts'
import type { Executor } from '../executor.ts'
import { closed, unreachable } from '../server-errors.ts'
import type { NodeAddress } from './cluster-url.ts'
import { HASH_SLOTS } from './hash-slots.ts'

/** Runs commands on one node; does not know where keys belong. */
export type Connect = (address: NodeAddress) => Executor

type HashSlotRange = readonly [
  first: number,
  last: number,
  primary: readonly [host: string | null, port: number],
]

/** By hash slot; null if no node serves it. */
type HashSlotMap = readonly (NodeAddress | null)[]

export class Topology {
  readonly #seeds: readonly NodeAddress[]
  readonly #connect: Connect
  readonly #nodes = new Map<string, { readonly address: NodeAddress; readonly executor: Executor }>()
  #map: HashSlotMap | undefined
  #asking: Promise<HashSlotMap> | undefined
  #closing: Promise<unknown> | undefined
  #turn = 0

  constructor(seeds: readonly NodeAddress[], connect: Connect) {
    this.#seeds = seeds
    this.#connect = connect
  }

  async primaryOf(hashSlot: number): Promise<Executor> {
    const address = (await this.#known())[hashSlot]
    if (address) return this.#node(address)
    this.forget()
    throw unreachable(`No node of the cluster serves hash slot ${hashSlot}.`)
  }

  async primaries(): Promise<readonly Executor[]> {
    const addresses = (await this.#known()).filter((address) => address !== null)
    return [...new Set(addresses.map((address) => this.#node(address)))]
  }

  /** Call it if the map was wrong: it is read again before the next use. */
  forget(): void {
    this.#map = undefined
  }

  /** The address of any node, a different one each time. */
  anyAddress(): ClientOptions {
    const all = [...this.#candidates().values()]
    const { host, port } = all[this.#turn++ % all.length] as NodeAddress
    return { host, port }
  }

  async close(): Promise<void> {
    this.#closing ??= Promise.all([...this.#nodes.values()].map(({ executor }) => executor.close()))
    await this.#closing
  }

  refuseWhenClosed(): void {
    if (this.#closing !== undefined) throw closed()
  }

  #node(address: NodeAddress): Executor {
    this.refuseWhenClosed()
    const name = nameOf(address)
    const known = this.#nodes.get(name)
    if (known !== undefined) return known.executor
    const executor = this.#connect(address)
    this.#nodes.set(name, { address, executor })
    return executor
  }

  async #known(): Promise<HashSlotMap> {
    if (this.#map !== undefined) return this.#map
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  /** Uses the first answer. A node that is cut off may answer wrongly; its redirections show that later. */
  async #ask(): Promise<HashSlotMap> {
    const asked = [...this.#candidates().values()].map(async (address) => {
      const ranges = await this.#node(address).command('CLUSTER', ['SLOTS'])
      return readMap(ranges as HashSlotRange[], address)
    })
    try {
      this.#map = await Promise.any(asked)
    } catch (error) {
      throw error instanceof AggregateError ? error.errors[0] : error
    }
    this.#leaveOthers(this.#map)
    return this.#map
  }

  #candidates(): Map<string, NodeAddress> {
    const known = [...this.#nodes.values()].map(({ address }) => address)
    return new Map([...known, ...this.#seeds].map((address) => [nameOf(address), address]))
  }

  /** Closes connections to nodes that have no hash slots any more. */
  #leaveOthers(map: HashSlotMap): void {
    const serving = new Set(map.filter((address) => address !== null).map(nameOf))
    for (const [name, { executor }] of this.#nodes) {
      if (serving.has(name)) continue
      this.#nodes.delete(name)
      void executor.close().catch(() => undefined)
    }
  }
}

/** A node may leave out its own address: it is the one that was asked. */
function readMap(ranges: readonly HashSlotRange[], asked: NodeAddress): HashSlotMap {
  const map: (NodeAddress | null)[] = Array.from({ length: HASH_SLOTS }, () => null)
  for (const [first, last, [host, port]] of ranges)
    map.fill({ host: host === null || host === '' ? asked.host : host, port }, first, last + 1)
  return map
}

function nameOf({ host, port }: NodeAddress): string {
  return `${host}:${port}`
}
