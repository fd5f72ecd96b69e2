/** Which node of a cluster has which hash slot, as the nodes tell, and a connection to each. */
import type { ClientOptions } from '../driver.ts'
import type { Executor } from '../executor.ts'
import { closed, unreachable } from '../server-errors.ts'
import type { NodeAddress } from './cluster-url.ts'
import { SLOTS } from './slots.ts'

/** One node: its commands, and nothing of where they belong. */
export type Connect = (address: NodeAddress) => Executor

type SlotRange = readonly [first: number, last: number, primary: readonly [host: string | null, port: number]]

/** By hash slot; null where nobody serves it. */
type SlotMap = readonly (NodeAddress | null)[]

export class Topology {
  readonly #seeds: readonly NodeAddress[]
  readonly #connect: Connect
  readonly #nodes = new Map<string, { readonly address: NodeAddress; readonly executor: Executor }>()
  #map: SlotMap | undefined
  #asking: Promise<SlotMap> | undefined
  #closing: Promise<unknown> | undefined
  #turn = 0

  constructor(seeds: readonly NodeAddress[], connect: Connect) {
    this.#seeds = seeds
    this.#connect = connect
  }

  async primaryOf(slot: number): Promise<Executor> {
    const address = (await this.#known())[slot]
    if (address) return this.#node(address)
    this.forget()
    throw unreachable(`No node of the cluster serves hash slot ${slot}.`)
  }

  async primaries(): Promise<readonly Executor[]> {
    const addresses = (await this.#known()).filter((address) => address !== null)
    return [...new Set(addresses.map((address) => this.#node(address)))]
  }

  /** It was wrong somewhere: ask again before the next use. */
  forget(): void {
    this.#map = undefined
  }

  /** Some node, another one each time: for who does not care which. */
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

  async #known(): Promise<SlotMap> {
    if (this.#map !== undefined) return this.#map
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  /** Whoever answers first: a node that is cut off from the others does not know better, and is found out by its answers. */
  async #ask(): Promise<SlotMap> {
    const asked = [...this.#candidates().values()].map(async (address) => {
      const ranges = await this.#node(address).command('CLUSTER', ['SLOTS'])
      return readMap(ranges as SlotRange[], address)
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

  /** Nodes that have nothing any more. */
  #leaveOthers(map: SlotMap): void {
    const serving = new Set(map.filter((address) => address !== null).map(nameOf))
    for (const [name, { executor }] of this.#nodes) {
      if (serving.has(name)) continue
      this.#nodes.delete(name)
      void executor.close().catch(() => undefined)
    }
  }
}

/** A node may leave its own address out: it is where it was asked. */
function readMap(ranges: readonly SlotRange[], asked: NodeAddress): SlotMap {
  const map: (NodeAddress | null)[] = Array.from({ length: SLOTS }, () => null)
  for (const [first, last, [host, port]] of ranges)
    map.fill({ host: host === null || host === '' ? asked.host : host, port }, first, last + 1)
  return map
}

function nameOf({ host, port }: NodeAddress): string {
  return `${host}:${port}`
}
