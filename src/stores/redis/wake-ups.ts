/**
 * Wake-ups by PUBLISH, on a separate connection while there are listeners. The connection is pinged regularly: a
 * subscriber sends nothing else, so a half-open one would stay silent forever. Best effort: listeners poll as well.
 */
import { isLasting } from '../../errors.ts'
import type { WorkerId } from '../../job/ids.ts'
import { sleep, type Clock } from '../../std/clock.ts'
import { withDeadline } from '../../std/deadline.ts'
import { Listeners, type Listener } from '../listeners.ts'
import type { WakeUp } from '../store.ts'
import type { RedisClient } from './driver.ts'
import { Line, type LineParts } from './line.ts'
import { closed, explain, unreachable } from './server-errors.ts'

const ASK_EVERY_MS = 10_000
const ANSWER_MS = 5_000
const AGAIN_MS = 500
/** Pause while the server denies the connection. */
const DENIED_MS = 10_000

export class WakeUps {
  readonly #parts: LineParts
  readonly #channel: string
  readonly #listeners = new Listeners()
  #subscription: Subscription | undefined
  #closed = false

  constructor(parts: LineParts, channel: string) {
    this.#parts = parts
    this.#channel = channel
  }

  async subscribe(listener: Listener): Promise<() => Promise<void>> {
    if (this.#closed) throw closed()
    const remove = this.#listeners.add(listener)
    const subscription = (this.#subscription ??= new Subscription(this.#parts, this.#channel, (text) =>
      this.#hear(text),
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
    const hint = hintOf(text)
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
  readonly #stop = new AbortController()
  #lost: (() => void) | undefined

  constructor(parts: LineParts, channel: string, hear: (text: string) => void) {
    this.#clock = parts.clock
    this.#channel = channel
    const onClient = (client: RedisClient): void => {
      client.on('message', (_channel, text) => hear(text))
      client.on('end', () => this.#lost?.())
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
