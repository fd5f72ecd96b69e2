/** A Redis for each run: durable as one would run it, empty at first, with an append-only file of the run's own. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { startRedis, type RedisServer } from '../../test/support/servers/redis-server.ts'
import { statOf, TICK_MICROS } from '../contest/proc.ts'
import type { ContestServer } from '../contest/server.ts'

export const SERVER_SETTINGS = {
  appendonly: 'yes',
  appendfsync: 'everysec',
  save: '',
  'maxmemory-policy': 'noeviction',
  // A rewrite would fall into one run and not into another, and take away what was appended.
  'auto-aof-rewrite-percentage': '0',
} as const

const POLL_MS = 200
/** What is synced every second has been by then. */
const SYNC_MS = 1_100
const SETTLE_MS = 20_000
/** Memory has settled when so many looks differ by no more than this. */
const LOOKS = 4
const TOLERANCE = 0.001

/** What the run's server holds. */
export interface Footprint {
  readonly memoryBytes: number
  /** Appended since it was started. */
  readonly aofBytes: number
}

interface Place {
  readonly server: RedisServer
  readonly redis: Redis
  readonly pid: number
}

export class RedisBenchServer implements ContestServer {
  readonly version: string
  #place: Place | undefined

  private constructor(version: string) {
    this.version = version
  }

  static async start(): Promise<RedisBenchServer> {
    const place = await openPlace()
    try {
      return new RedisBenchServer(textOf(await factsOf(place.redis), 'redis_version'))
    } finally {
      await closePlace(place)
    }
  }

  async createPlace(): Promise<string> {
    this.#place = await openPlace()
    return this.#place.server.url
  }

  async dropPlace(): Promise<void> {
    const place = this.#place
    this.#place = undefined
    if (place !== undefined) await closePlace(place)
  }

  async calmDown(): Promise<void> {
    await sleep(SYNC_MS)
    await this.#until('Redis did not come to rest', (facts) =>
      ['aof_buffer_length', 'aof_pending_bio_fsync', 'aof_rewrite_in_progress'].every(
        (name) => numberOf(facts, name) === 0,
      ),
    )
  }

  cpuMicros(): number {
    const stat = statOf(this.#current.pid)
    if (stat === undefined) throw new Error('Redis has ended.')
    return (stat.own + stat.ended) * TICK_MICROS
  }

  async loggedBytes(): Promise<number> {
    return numberOf(await factsOf(this.#current.redis), 'aof_current_size')
  }

  /** Once it is at rest and has given back what it can: hash tables grow, and buffers shrink, bit by bit. */
  async footprint(): Promise<Footprint> {
    await this.calmDown()
    let looks: number[] = []
    const facts = await this.#until('The memory of Redis did not settle', (now) => {
      looks = [...looks, numberOf(now, 'used_memory')].slice(-LOOKS)
      const most = Math.max(...looks)
      return looks.length === LOOKS && most - Math.min(...looks) <= most * TOLERANCE
    })
    return {
      memoryBytes: numberOf(facts, 'used_memory'),
      aofBytes: numberOf(facts, 'aof_current_size'),
    }
  }

  dispose(): Promise<void> {
    return this.dropPlace()
  }

  get #current(): Place {
    if (this.#place === undefined) throw new Error('No Redis runs.')
    return this.#place
  }

  async #until(otherwise: string, isSo: (facts: Facts) => boolean): Promise<Facts> {
    const deadline = performance.now() + SETTLE_MS
    for (;;) {
      const facts = await factsOf(this.#current.redis)
      if (isSo(facts)) return facts
      if (performance.now() > deadline) throw new Error(`${otherwise} in ${SETTLE_MS / 1_000} s.`)
      await sleep(POLL_MS)
    }
  }
}

async function openPlace(): Promise<Place> {
  const server = await startRedis({ settings: SERVER_SETTINGS })
  const redis = new Redis(server.url)
  try {
    return { server, redis, pid: numberOf(await factsOf(redis), 'process_id') }
  } catch (error) {
    redis.disconnect()
    await server.dispose()
    throw error
  }
}

async function closePlace({ server, redis }: Place): Promise<void> {
  redis.disconnect()
  await server.dispose()
}

/** What INFO tells, by name. */
type Facts = ReadonlyMap<string, string>

async function factsOf(redis: Redis): Promise<Facts> {
  const lines = (await redis.info()).split('\r\n').filter((line) => line.includes(':'))
  return new Map(
    lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)] as const),
  )
}

function textOf(facts: Facts, name: string): string {
  const text = facts.get(name)
  if (text === undefined) throw new Error(`Redis does not tell its ${name}.`)
  return text
}

function numberOf(facts: Facts, name: string): number {
  return Number(textOf(facts, name))
}
