/** The store on a Redis server, version 6.2 or newer (or Valkey), or on a Redis Cluster. */
import { systemClock } from '../../std/clock.ts'
import { systemRandom } from '../../std/random.ts'
import { Pulses, type PulseParts } from '../pulse/pulse.ts'
import type { Store } from '../store.ts'
import { checkCluster, checkServer } from './boot.ts'
import { ClusterExecutor } from './cluster/cluster-executor.ts'
import { clusterLayout } from './cluster/cluster-layout.ts'
import type { NodeAddress } from './cluster/cluster-url.ts'
import { Topology } from './cluster/topology.ts'
import { loadIoredis } from './driver.ts'
import { LineExecutor, type Executor } from './executor.ts'
import { oneShardLayout, type Layout } from './layout.ts'
import { Line, type LineParts } from './line.ts'
import { readRedisOptions, type RedisSettings, type RedisStoreOptions } from './options.ts'
import { redisThread } from './start-pulse.ts'
import type { Run } from './run.ts'
import { scriptStore } from './script-store.ts'
import { readScripts, type Scripts } from './scripts.ts'
import { channelOf, oneShard } from './shards.ts'
import { WakeUps } from './wake-ups.ts'

export function redisStore(options: RedisStoreOptions): Store {
  return redisStoreWith(options, readScripts())
}

/** With the caller's own scripts and a budget for lists, for tests. */
export function redisStoreWith(options: RedisStoreOptions, scripts: Scripts, budget?: number): Store {
  const settings = readRedisOptions(options)
  const { cluster, prefix, onNotice } = settings
  const { executor, subscriber, layout, check } =
    cluster === null ? single(settings) : many(settings, cluster)
  const pulses = new Pulses({ thread: threadFor(settings, scripts), clock: systemClock, onNotice })
  const wakeUps = new WakeUps(subscriber, channelOf(prefix), systemRandom)
  let checked: Promise<void> | undefined
  const store = scriptStore({
    executor,
    scripts,
    layout: (run) => layout(prefix, run, () => wakeUps.own),
    wakeUps,
    clock: systemClock,
    random: systemRandom,
    ...(budget === undefined ? {} : { budget }),
    async check() {
      executor.refuseWhenClosed()
      checked ??= check().catch((error: unknown) => {
        // The next call tries again.
        checked = undefined
        throw error
      })
      await checked
    },
  })
  return {
    ...store,
    keepAlive: (worker, leaseMs) => pulses.keepAlive(worker, leaseMs),
    close: async () => {
      await Promise.all([pulses.close(), store.close()])
    },
  }
}

/** The connections to the servers. */
interface Way {
  readonly executor: Executor
  /** For a connection that only listens. */
  readonly subscriber: LineParts
  readonly layout: (prefix: string, run: Run, channel: () => string | null) => Layout
  readonly check: () => Promise<void>
}

function threadFor(
  { cluster, url, connection, db, prefix }: RedisSettings,
  scripts: Scripts,
): PulseParts['thread'] {
  // A worker is renewed in the shard of each queue that it claims from, and only the main thread knows which those are.
  if (cluster !== null) return { missing: 'there is none on a Redis Cluster yet' }
  return redisThread({ url, connection, db, renew: scripts.get('renew'), control: oneShard(prefix).control })
}

const TOOLS = { load: loadIoredis, clock: systemClock, random: systemRandom }

function single(settings: RedisSettings): Way {
  const { url, connection, db, commandTimeoutMs } = settings
  const line: LineParts = { ...TOOLS, url, connection, db }
  const executor = new LineExecutor(new Line(line), systemClock, commandTimeoutMs)
  return { executor, subscriber: line, layout: oneShardLayout, check: () => checkServer(executor, settings) }
}

function many(settings: RedisSettings, seeds: readonly NodeAddress[]): Way {
  const { connection, commandTimeoutMs } = settings
  const lineTo = (address: () => object): LineParts => ({
    ...TOOLS,
    url: null,
    db: 0,
    connection: () => ({ ...connection, ...address() }),
  })
  const connect = (address: NodeAddress): Executor =>
    new LineExecutor(new Line(lineTo(() => address)), systemClock, commandTimeoutMs)
  const topology = new Topology(seeds, connect)
  return {
    executor: new ClusterExecutor(topology, systemClock, commandTimeoutMs),
    subscriber: lineTo(() => topology.anyAddress()),
    layout: clusterLayout,
    check: async () => checkCluster(await topology.primaries(), settings),
  }
}
