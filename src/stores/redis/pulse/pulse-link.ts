/** One renewal in Redis, on the thread's one connection. */
import type { Clock } from '../../../std/clock.ts'
import type { Random } from '../../../std/random.ts'
import type { PulseLink } from '../../pulse/keeper.ts'
import { loadIoredis, type ClientOptions } from '../driver.ts'
import { LineExecutor } from '../executor.ts'
import { Line } from '../line.ts'
import type { Script } from '../scripts.ts'
import type { Shard } from '../shards.ts'
import { respModule } from './resp-client.ts'
import { respTarget } from './resp-target.ts'

export interface RedisPulse {
  readonly url: string | null
  readonly connection: ClientOptions
  readonly db: number
  readonly renew: Script
  /** Where workers are registered. */
  readonly control: Shard
}

export class RedisPulseLink implements PulseLink {
  readonly #pulse: RedisPulse
  readonly #clock: Clock
  readonly #random: Random
  #line: Line | undefined

  constructor(pulse: RedisPulse, clock: Clock, random: Random) {
    this.#pulse = pulse
    this.#clock = clock
    this.#random = random
  }

  async renew(worker: string, leaseMs: number): Promise<boolean> {
    const { renew, control } = this.#pulse
    this.#line ??= this.#newLine()
    const executor = new LineExecutor(this.#line, this.#clock, leaseMs / 3)
    return (await executor.script(renew, control.keys, [worker])) === 1
  }

  async close(): Promise<void> {
    const line = this.#line
    this.#line = undefined
    await line?.close()
  }

  #newLine(): Line {
    const { url, db } = this.#pulse
    // Identifies the connection in CLIENT LIST.
    const connection = { ...this.#pulse.connection, connectionName: 'holdfast-pulse' }
    const target = respTarget(url, connection)
    return new Line({
      load: target === null ? loadIoredis : () => Promise.resolve(respModule(target)),
      url,
      db,
      connection,
      clock: this.#clock,
      random: this.#random,
    })
  }
}
