/**
 * Wake-ups by PUBLISH, on a separate connection while there are listeners. The connection is pinged regularly: a
 * subscriber sends nothing else, so a half-open one would stay silent forever. Best effort: listeners poll as well.
 */
import { isLasting } from '../../errors.ts'
import type { WorkerId } from '../../job/ids.ts'
import { sleep, type Clock } from '../../std/clock.ts'
import { withDeadline } from '../../std/deadline.ts'
import type { Random } from '../../std/random.ts'
import { Listeners, type Listener } from '../listeners.ts'
import type { WakeUp } from '../store.ts'
import type { RedisClient } from './driver.ts'
import { Line, type LineParts } from './line.ts'
import { closed, explain, unreachable } from './server-errors.ts'
import { handedOver } from './worker-calls.ts'

const ASK_EVERY_MS = 10_000
const ANSWER_MS = 5_000
const AGAIN_MS = 500
/** Pause while the server denies the connection. */
const DENIED_MS = 10_000

export class WakeUps {
  readonly #parts: LineParts
  readonly #channel: string
  readonly #listeners = new Listeners()
  /** Of this process, within the channel of all. */
  readonly #own: string
  #subscription: Subscription | undefined
  #closed = false

  constructor(parts: LineParts, channel: string, random: Random) {
    this.#parts = parts
    this.#channel = channel
    this.#own = random.uint32().toString(36) + random.uint32().toString(36)
  }

  /** Where leases are handed to this process, if it listens there. */
  get own(): string | null {
    return this.#subscription?.hasOwn === true ? this.#own : null
  }

  async subscribe(listener: Listener): Promise<() => Promise<void>> {
    if (this.#closed) throw closed()
    const remove = this.#listeners.add(listener)
    const subscription = (this.#subscription ??= new Subscription(
      this.#parts,
      [this.#channel, `${this.#channel}:${this.#own}`],
      (text) => this.#hear(text),
    ))
    try {
      await subscription.started
    } catch (error) {
      remove()
      if (this.#subscription === subscription) this.#subscription = undefined
      await subscription.stop()
      throw this.#closed ? closed() : explain(error)
    }
    return async () => {
      if (remove()) await this.#end()
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#listeners.clear()
    await this.#end()
  }

  async #end(): Promise<void> {
    const subscription = this.#subscription
    this.#subscription = undefined
    await subscription?.stop()
  }

  #hear(text: string): void {
    let hint: WakeUp | null
    try {
      hint = hintOf(text)
    } catch {
      // A lease that cannot be read is released by the worker's next claim.
      return
    }
    if (hint !== null) this.#listeners.tell(hint)
  }
}

function hintOf(text: string): WakeUp | null {
  const rest = text.slice(2)
  switch (text.slice(0, 2)) {
    case 'r ':
      return { type: 'ready', queue: rest }
    case 'd ':
      return { type: 'due', inMs: Number(rest) }
    case 'p ':
      return { type: 'paused', queue: rest }
    case 'c ':
      return { type: 'cancel', worker: rest as WorkerId }
    case 'l ':
      return handedOver(rest)
    default:
      return null
  }
}

/** Set from the first listener to the last: subscribed, or about to be. */
class Subscription {
  /** Settles with the first attempt. */
  readonly started: Promise<void>
  readonly #line: Line
  readonly #clock: Clock
  readonly #channel: string
  readonly #own: string
  readonly #stop = new AbortController()
  #lost: (() => void) | undefined
  /** Whether it listens on the channel of this process as well: the server may deny that. */
  hasOwn = false

  constructor(parts: LineParts, [channel, own]: readonly [string, string], hear: (text: string) => void) {
    this.#clock = parts.clock
    this.#channel = channel
    this.#own = own
    const onClient = (client: RedisClient): void => {
      client.on('message', (_channel, text) => hear(text))
      client.on('end', () => {
        this.hasOwn = false
        this.#lost?.()
      })
    }
    this.#line = new Line({ ...parts, onClient })
    this.started = this.#listen().then((client) => {
      void this.#watch(client)
    })
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    this.#lost?.()
    await this.#line.close()
  }

  async #listen(): Promise<RedisClient> {
    const client = await this.#line.client()
    await this.#answered(client, client.subscribe(this.#channel))
    // Without it, this process is handed nothing; wake-ups come all the same.
    const late = (): Error => unreachable('Redis did not answer.')
    await withDeadline(this.#clock, ANSWER_MS, client.subscribe(this.#own), late).then(
      () => (this.hasOwn = client.status === 'ready'),
      () => undefined,
    )
    client.stream?.unref?.()
    return client
  }

  async #answered(client: RedisClient, work: Promise<unknown>): Promise<void> {
    try {
      await withDeadline(this.#clock, ANSWER_MS, work, () => unreachable('Redis did not answer.'))
    } catch (error) {
      this.#line.drop(client)
      throw error
    }
  }

  /** Never rejects; ends with the stop. */
  async #watch(first: RedisClient): Promise<void> {
    let client: RedisClient | undefined = first
    const { signal } = this.#stop
    while (!signal.aborted) {
      if (client !== undefined) await this.#untilLost(client)
      client = undefined
      if (signal.aborted) return
      try {
        client = await this.#listen()
      } catch (error) {
        const pauseMs = isLasting(explain(error)) ? DENIED_MS : AGAIN_MS
        await sleep(this.#clock, pauseMs, signal).catch(() => undefined)
      }
    }
  }

  async #untilLost(client: RedisClient): Promise<void> {
    while (client.status === 'ready' && !this.#stop.signal.aborted) {
      await new Promise<void>((resolve) => {
        const cancel = this.#clock.after(ASK_EVERY_MS, resolve)
        this.#lost = () => {
          cancel()
          resolve()
        }
      })
      this.#lost = undefined
      if (client.status !== 'ready' || this.#stop.signal.aborted) return
      await this.#answered(client, client.ping()).catch(() => undefined)
    }
  }
}
