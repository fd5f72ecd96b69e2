/** A real Redis Cluster of one's own: some primaries on ports of this machine, whose slots can be moved about. */
import { Redis } from 'ioredis'
import { until } from '../until.ts'
import { startRedis, type RedisServer, type RedisServerOptions } from './redis-server.ts'

const SLOTS = 16_384
const NODES = 3

export async function startRedisCluster({ settings = {} }: RedisServerOptions = {}): Promise<RedisCluster> {
  const servers: RedisServer[] = []
  try {
    for (let index = 0; index < NODES; index++)
      servers.push(
        await startRedis({
          settings: { 'cluster-enabled': 'yes', 'cluster-node-timeout': '2000', ...settings },
        }),
      )
    const cluster = new RedisCluster(servers)
    await cluster.form()
    return cluster
  } catch (error) {
    await Promise.all(servers.map((server) => server.dispose()))
    throw error
  }
}

export class RedisCluster {
  readonly nodes: readonly RedisServer[]

  constructor(nodes: readonly RedisServer[]) {
    this.nodes = nodes
  }

  get url(): string {
    const [first, ...others] = this.nodes.map(({ port }) => `127.0.0.1:${port}`)
    return `redis-cluster://${first}?${others.map((node) => `node=${node}`).join('&')}`
  }

  /** The slots are shared out evenly. */
  async form(): Promise<void> {
    const [first] = this.nodes
    for (const [index, node] of this.nodes.entries()) {
      const from = Math.ceil((index * SLOTS) / this.nodes.length)
      const to = Math.ceil(((index + 1) * SLOTS) / this.nodes.length)
      const slots = Array.from({ length: to - from }, (_, at) => from + at)
      await on(node, async (redis) => {
        // Epochs that differ from the start spare them the quarrel about who is right.
        await redis.call('CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1))
        await redis.call('CLUSTER', 'ADDSLOTS', ...slots)
        if (first !== undefined && node !== first)
          await redis.call('CLUSTER', 'MEET', '127.0.0.1', String(first.port))
      })
    }
    await until('the cluster to be whole', () => this.isWhole())
  }

  /** Moves a slot with all its keys to the next node, one key at a time and with a pause between them. */
  async moveSlot(slot: number, pauseMs = 0): Promise<void> {
    const owner = await this.#ownerOf(slot)
    const next = this.nodes[(owner + 1) % this.nodes.length] as RedisServer
    const source = this.nodes[owner] as RedisServer
    const [sourceId, nextId] = [await idOf(source), await idOf(next)]
    await on(next, (redis) => redis.call('CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', sourceId))
    await on(source, async (redis) => {
      await redis.call('CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', nextId)
      for (;;) {
        const keys = (await redis.call('CLUSTER', 'GETKEYSINSLOT', String(slot), '1')) as string[]
        if (keys.length === 0) break
        await redis.call('MIGRATE', '127.0.0.1', String(next.port), '', '0', '5000', 'KEYS', ...keys)
        await new Promise((resolve) => setTimeout(resolve, pauseMs))
      }
    })
    await on(next, (redis) => redis.call('CLUSTER', 'SETSLOT', String(slot), 'NODE', nextId))
    for (const node of this.nodes)
      await on(node, (redis) => redis.call('CLUSTER', 'SETSLOT', String(slot), 'NODE', nextId))
  }

  async dispose(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.dispose()))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }

  async #ownerOf(slot: number): Promise<number> {
    const ranges = (await on(this.nodes[0] as RedisServer, (redis) => redis.call('CLUSTER', 'SLOTS'))) as [
      first: number,
      last: number,
      primary: [host: string, port: number],
    ][]
    const range = ranges.find(([first, last]) => first <= slot && slot <= last)
    return this.nodes.findIndex(({ port }) => port === range?.[2][1])
  }

  /** Whether every slot is served and every node says so. */
  async isWhole(): Promise<boolean> {
    const states = await Promise.all(
      this.nodes.map((node) => on(node, (redis) => redis.call('CLUSTER', 'INFO') as Promise<string>)),
    )
    return states.every(
      (text) => text.includes('cluster_state:ok') && text.includes(`cluster_known_nodes:${NODES}`),
    )
  }
}

function idOf(node: RedisServer): Promise<string> {
  return on(node, (redis) => redis.call('CLUSTER', 'MYID') as Promise<string>)
}

async function on<T>(node: RedisServer, work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(node.url)
  redis.on('error', () => undefined)
  try {
    return await work(redis)
  } finally {
    redis.disconnect()
  }
}
