/**
 * Commands and scripts over one connection that all callers share: Redis answers in order anyway. Every call has an
 * end on this side, and whatever goes wrong comes out as an error that says what it means.
 */
import type { Clock } from '../../std/clock.ts'
import { withDeadline } from '../../std/deadline.ts'
import type { RedisClient, RedisValue } from './driver.ts'
import { LineWatch } from './line-watch.ts'
import type { Line } from './line.ts'
import type { Script } from './scripts.ts'
import { closed, endsConnection, explain, isUnknownScript, unreachable } from './server-errors.ts'

export interface Executor {
  command(name: string, args: readonly RedisValue[]): Promise<unknown>
  /** `withinMs`: it is not sent after that time, whatever it waits for. */
  script(
    script: Script,
    keys: readonly string[],
    args: readonly RedisValue[],
    withinMs?: number,
  ): Promise<unknown>
  /** For what needs no server: throws HF_CLOSED after the close. */
  refuseWhenClosed(): void
  /** Gives everything back, within a bounded time; later calls reject with HF_CLOSED. Safe to call again. */
  close(): Promise<void>
}

export class LineExecutor implements Executor {
  readonly #line: Line
  readonly #clock: Clock
  readonly #timeoutMs: number
  readonly #watch: LineWatch
  /** Which shards were greeted on a connection. */
  readonly #greeted = new WeakMap<RedisClient, Set<string>>()
  #underWay = 0
  #closing: Promise<void> | undefined

  constructor(line: Line, clock: Clock, timeoutMs: number) {
    this.#line = line
    this.#clock = clock
    this.#timeoutMs = timeoutMs
    this.#watch = new LineWatch(line, clock)
  }

  command(name: string, args: readonly RedisValue[]): Promise<unknown> {
    return this.#bounded((client) => client.call(name, args))
  }

  script(
    script: Script,
    keys: readonly string[],
    args: readonly RedisValue[],
    withinMs?: number,
  ): Promise<unknown> {
    const { text, sha, greeting } = script
    return this.#bounded(async (client) => {
      if (greeting !== null) this.#greet(client, greeting, keys)
      try {
        return await client.call('EVALSHA', [sha, keys.length, ...keys, ...args])
      } catch (error) {
        if (!isUnknownScript(error)) throw error
        // The server was restarted or has flushed its scripts; it knows the script from now on.
        return client.call('EVAL', [text, keys.length, ...keys, ...args])
      }
    }, withinMs)
  }

  refuseWhenClosed(): void {
    if (this.#closing !== undefined) throw closed()
  }

  close(): Promise<void> {
    this.#watch.close()
    this.#closing ??= this.#line.close()
    return this.#closing
  }

  /**
   * Once for each connection and shard: a server that has taken over is reached by a new connection. It
   * is sent in front of the script and so runs before it; as a text, because a server that is new would not know it.
   */
  #greet(client: RedisClient, { text }: Script, keys: readonly string[]): void {
    const [base = ''] = keys
    const greeted = this.#greeted.get(client) ?? new Set()
    this.#greeted.set(client, greeted)
    if (greeted.has(base)) return
    greeted.add(base)
    // The script sent after it gets the server's error as well.
    client.call('EVAL', [text, keys.length, ...keys]).catch(() => greeted.delete(base))
  }

  async #bounded(work: (client: RedisClient) => Promise<unknown>, withinMs = Infinity): Promise<unknown> {
    this.refuseWhenClosed()
    const sendByMs = this.#clock.monotonicMs() + withinMs
    let used: RedisClient | undefined
    let isLate = false
    const late = (): Error => {
      isLate = true
      // It may be half open: do not use it again.
      if (used !== undefined) this.#line.drop(used)
      return unreachable(`Redis did not answer within ${this.#timeoutMs} ms.`)
    }
    const send = async (): Promise<unknown> => {
      used = await this.#line.client()
      // The caller has given up: a claim that is sent now would lease jobs that no worker runs.
      if (isLate || this.#clock.monotonicMs() > sendByMs)
        throw unreachable('Redis could not be reached in time.')
      return this.#held(used, work)
    }
    try {
      return await withDeadline(this.#clock, this.#timeoutMs, send(), late)
    } catch (error) {
      if (used !== undefined && endsConnection(error)) this.#line.drop(used)
      // If the store was closed meanwhile, that explains the failure better.
      if (this.#closing !== undefined) throw closed()
      throw explain(error)
    }
  }

  /** The socket keeps the process alive only while an answer is awaited. */
  async #held(client: RedisClient, work: (client: RedisClient) => Promise<unknown>): Promise<unknown> {
    if (this.#underWay++ === 0) client.stream?.ref?.()
    const answered = this.#watch.awaits(client)
    try {
      return await work(client)
    } finally {
      answered()
      if (--this.#underWay === 0) client.stream?.unref?.()
    }
  }
}
