/** The store on a Redis server, version 6.2 or newer (or Valkey), without Cluster. */
import { systemClock } from '../../std/clock.ts'
import { systemRandom } from '../../std/random.ts'
import { Pulses } from '../pulse/pulse.ts'
import type { Store } from '../store.ts'
import { checkServer } from './boot.ts'
import { loadIoredis } from './driver.ts'
import { LineExecutor } from './executor.ts'
import { Line } from './line.ts'
import { readRedisOptions, type RedisStoreOptions } from './options.ts'
import { redisThread } from './pulse/start-pulse.ts'
import { scriptStore } from './script-store.ts'
import { readScripts, type Scripts } from './scripts.ts'
import { channelOf, oneShard } from './shards.ts'
import { WakeUps } from './wake-ups.ts'

export function redisStore(options: RedisStoreOptions): Store {
  return redisStoreWith(options, readScripts())
}

/** With scripts that the caller rendered: for tests that set the store's clock. */
export function redisStoreWith(options: RedisStoreOptions, scripts: Scripts): Store {
  const { url, connection, prefix, commandTimeoutMs, allowEviction, onNotice } = readRedisOptions(options)
  const line = { load: loadIoredis, url, connection, clock: systemClock, random: systemRandom }
  const executor = new LineExecutor(new Line(line), systemClock, commandTimeoutMs)
  const shards = oneShard(prefix)
  const renew = scripts.get('renew')
  const thread = redisThread({ url, connection, renew, control: shards.control })
  const pulses = new Pulses({ thread, clock: systemClock, onNotice })
  let checked: Promise<void> | undefined
  const store = scriptStore({
    executor,
    scripts,
    shards,
    wakeUps: new WakeUps(line, channelOf(prefix)),
    clock: systemClock,
    random: systemRandom,
    async check() {
      executor.refuseWhenClosed()
      checked ??= checkServer(executor, { allowEviction, onNotice }).catch((error: unknown) => {
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
