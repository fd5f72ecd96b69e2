/**
 * LISTEN on one connection (see `wire.ts` for which), for all listeners. A lost connection is reopened with backoff,
 * and then all listeners are notified of the gap. Regular pings find a silent connection. Behind a pooler in
 * transaction mode LISTEN succeeds but no notice ever arrives, so each connection is tested with a notice from another
 * one.
 */
import { isLasting } from '../../../errors.ts'
import { jittered, nextPause, type Backoff } from '../../../std/backoff.ts'
import { Bell } from '../../../std/bell.ts'
import type { Clock } from '../../../std/clock.ts'
import { sleep } from '../../../std/clock.ts'
import { withDeadline } from '../../../std/deadline.ts'
import type { Random } from '../../../std/random.ts'
import { toError } from '../../../std/text.ts'
import { explain } from '../server-errors.ts'
import type { PgNotice } from './driver.ts'
import { unreachable } from './driver.ts'
import { closed } from './own-pool.ts'
import { ANSWER_MS, type OpenWire, type Wire, type WireTells } from './wire.ts'

export interface Listening {
  readonly listening: boolean
  stop(): Promise<void>
}

export interface ListenerParts {
  readonly openWire: OpenWire
  readonly clock: Clock
  readonly random: Random
  readonly onNotice: (line: string) => void
  /**
   * Sends a notice through another connection: a pooler delivers a listener's own notices even if it loses all others.
   */
  readonly notify: (channel: string, payload: string) => Promise<void>
}

interface Subscriber {
  readonly onNotice: (payload: string) => void
  readonly onGap: () => void
}

const BACKOFF: Backoff = { firstMs: 100, longestMs: 5_000 }
const ASK_EVERY_MS = 30_000
const TRIAL_MS = 2_000
/** How long to rely on polling before another try: a moment of overload may have failed the test. */
const DEAF_MS = 300_000
/** Pause while the server denies the connection: a person has to change something first. */
const DENIED_MS = 30_000

/** The connection listens, but no notice arrives. */
class Deaf extends Error {}

export class Listener {
  readonly #parts: ListenerParts
  readonly #channels = new Map<string, Set<Subscriber>>()
  /** The loop that keeps the connection open; there is one while there are listeners. */
  #running: { readonly stop: AbortController; readonly ended: Promise<void> } | undefined
  /** Settles with the current try; every channel registered by then is listened to. */
  #trying: Promise<void> = Promise.resolve()
  #link: Link | undefined
  /** The heartbeat thread came up since the last try. */
  #threadIsUp = false
  #deaf = false
  /** Whether the last try was denied, or its database is missing. */
  #denied = false
  #closed = false

  constructor(parts: ListenerParts) {
    this.#parts = parts
  }

  /**
   * Resolves when the first try is over. Does not reject if the server is down: the subscription remains, and the gap
   * is reported when the server is back.
   */
  async listen(channel: string, onNotice: (payload: string) => void, onGap: () => void): Promise<Listening> {
    if (this.#closed) throw closed()
    const subscriber: Subscriber = { onNotice, onGap }
    const subscribers = this.#channels.get(channel) ?? new Set()
    this.#channels.set(channel, subscribers.add(subscriber))
    this.#running ??= this.#start()
    await this.#trying
    await this.#link?.listen(channel)
    const isDeaf = (): boolean => this.#deaf
    return {
      get listening() {
        return !isDeaf()
      },
      stop: () => this.#leave(channel, subscriber),
    }
  }

  /** The heartbeat thread is up: its connection takes over from one of our own. */
  moveToThread(): void {
    this.#threadIsUp = true
    this.#link?.look()
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#channels.clear()
    await this.#stop()
  }

  async #leave(channel: string, subscriber: Subscriber): Promise<void> {
    const subscribers = this.#channels.get(channel)
    if (subscribers?.delete(subscriber) !== true || subscribers.size > 0) return
    this.#channels.delete(channel)
    if (this.#channels.size === 0) await this.#stop()
    else await this.#link?.unlisten(channel)
  }

  #start(): { readonly stop: AbortController; readonly ended: Promise<void> } {
    const stop = new AbortController()
    return { stop, ended: this.#keepUp(stop.signal) }
  }

  async #stop(): Promise<void> {
    const running = this.#running
    this.#running = undefined
    running?.stop.abort(closed())
    await running?.ended
  }

  async #keepUp(stop: AbortSignal): Promise<void> {
    const { clock, random } = this.#parts
    let backoffMs = BACKOFF.firstMs
    let replaced: Link | undefined
    for (let isFirst = true; !stop.aborted; isFirst = false) {
      const link = await this.#try(stop)
      // Ended last, so that nothing is missed between the two. A notice that both receive is delivered twice, which is
      // fine for a hint.
      await replaced?.end()
      replaced = undefined
      if (link !== undefined) {
        backoffMs = BACKOFF.firstMs
        if (!isFirst) this.#tellGap()
        await link.until(() => stop.aborted || this.#canMove(link), stop)
        // A loop that started meanwhile has a signal of its own.
        if (this.#link === link) this.#link = undefined
        if (!stop.aborted && link.broken === undefined) {
          replaced = link
          continue
        }
        await link.end()
      }
      const pauseMs = this.#deaf ? DEAF_MS : this.#denied ? DENIED_MS : jittered(backoffMs, random.float())
      backoffMs = nextPause(BACKOFF, backoffMs)
      await sleep(clock, pauseMs, stop).catch(() => undefined)
    }
    await replaced?.end()
  }

  #canMove(link: Link): boolean {
    return this.#threadIsUp && link.isOwn
  }

  /** One try to open a connection that receives notices; undefined if it failed. */
  async #try(stop: AbortSignal): Promise<Link | undefined> {
    let done = (): void => undefined
    this.#trying = new Promise((resolve) => (done = resolve))
    this.#threadIsUp = false
    try {
      const link = await this.#connect(stop)
      this.#link = link
      this.#noteHearing()
      return link
    } catch (error) {
      if (error instanceof Deaf) this.#noteDeaf()
      this.#noteDenied(explain(error))
      return undefined
    } finally {
      done()
    }
  }

  async #connect(stop: AbortSignal): Promise<Link> {
    const link = await Link.open(this.#parts, stop, {
      onNotice: (notice) => this.#deliver(notice),
      onGap: () => this.#tellGap(),
    })
    const cutShort = (): void => link.destroy(closed())
    stop.addEventListener('abort', cutShort)
    try {
      for (const channel of this.#channels.keys()) await link.listen(channel)
      await link.tryOut()
      // Listeners that were added meanwhile.
      for (const channel of this.#channels.keys()) await link.listen(channel)
      if (link.broken !== undefined) throw link.broken
      stop.throwIfAborted()
      return link
    } catch (error) {
      await link.end()
      throw error
    } finally {
      stop.removeEventListener('abort', cutShort)
    }
  }

  /** In microtasks, so that a listener that throws affects neither the others nor the socket. */
  #deliver({ channel, payload = '' }: PgNotice): void {
    for (const { onNotice } of this.#channels.get(channel) ?? []) queueMicrotask(() => onNotice(payload))
  }

  #tellGap(): void {
    for (const { onGap } of [...this.#channels.values()].flatMap((all) => [...all])) queueMicrotask(onGap)
  }

  #noteDeaf(): void {
    if (this.#deaf) return
    this.#deaf = true
    this.#parts.onNotice(
      'LISTEN is accepted here, but no notice arrives (a pooler in transaction mode?): new jobs are found by polling only, somewhat later. Connect to the server directly, or in session mode, to be woken at once.',
    )
  }

  #noteDenied(error: unknown): void {
    const told = this.#denied
    this.#denied = isLasting(error)
    if (!this.#denied || told || !(error instanceof Error)) return
    this.#parts.onNotice(`Workers find new jobs by polling only, so somewhat later. ${error.message}`)
  }

  #noteHearing(): void {
    if (!this.#deaf && !this.#denied) return
    this.#deaf = false
    this.#denied = false
    this.#parts.onNotice('Notices arrive again: workers find new jobs at once.')
  }
}

/** One connection that listens, from when it is opened to its end. */
class Link {
  readonly #wire: Wire
  readonly #parts: ListenerParts
  readonly #listened = new Set<string>()
  readonly #bell: Bell
  readonly #tells: { onNotice: WireTells['onNotice'] }
  #broken: Error | undefined

  static async open(parts: ListenerParts, stop: AbortSignal, tells: WireTells): Promise<Link> {
    const current = { ...tells }
    const wire = await parts.openWire({ ...tells, onNotice: (notice) => current.onNotice(notice) }, stop)
    return new Link(wire, parts, current)
  }

  private constructor(wire: Wire, parts: ListenerParts, tells: { onNotice: WireTells['onNotice'] }) {
    this.#wire = wire
    this.#parts = parts
    this.#tells = tells
    this.#bell = new Bell(parts.clock)
    void wire.gone.then(() => this.destroy(unreachable('The listening connection ended.')))
  }

  get broken(): Error | undefined {
    return this.#broken
  }

  get isOwn(): boolean {
    return this.#wire.isOwn
  }

  /** Something may have changed for waiters in `until`. */
  look(): void {
    this.#bell.ring()
  }

  destroy(reason: Error): void {
    this.#broken ??= reason
    this.#wire.cut(this.#broken)
    this.look()
  }

  /** Never rejects: a link that fails at it is lost, and its successor listens to everything. */
  async listen(channel: string): Promise<void> {
    if (this.#listened.has(channel)) return
    if (await this.#run(`listen ${quoted(channel)}`)) this.#listened.add(channel)
  }

  async unlisten(channel: string): Promise<void> {
    this.#listened.delete(channel)
    await this.#run(`unlisten ${quoted(channel)}`)
  }

  /** Rejects with `Deaf` if a notice was sent and did not arrive. */
  async tryOut(): Promise<void> {
    const { clock, random, notify } = this.#parts
    const channel = `holdfast_trial_${random.uint32().toString(36)}${random.uint32().toString(36)}`
    if (!(await this.#run(`listen ${quoted(channel)}`))) return
    const deliver = this.#tells.onNotice
    try {
      const arrived = new Promise<void>((resolve) => {
        this.#tells.onNotice = (notice) => (notice.channel === channel ? resolve() : deliver(notice))
      })
      const late = (): Error => unreachable('The test notice could not be sent.')
      const sent = withDeadline(clock, ANSWER_MS, notify(channel, channel), late)
      await Promise.race([sent, this.#wire.gone])
      await withDeadline(clock, TRIAL_MS, Promise.race([arrived, this.#wire.gone]), () => new Deaf())
    } finally {
      this.#tells.onNotice = deliver
    }
    await this.#run(`unlisten ${quoted(channel)}`)
  }

  /** Resolves when the connection is of no further use, or once `over` is true; `stop` makes it check again. */
  async until(over: () => boolean, stop: AbortSignal): Promise<void> {
    const look = (): void => this.look()
    stop.addEventListener('abort', look)
    while (!over() && this.broken === undefined) {
      const isNews = await this.#bell.wait(ASK_EVERY_MS)
      if (!isNews) await this.#run('select 1')
    }
    stop.removeEventListener('abort', look)
  }

  async end(): Promise<void> {
    if (this.broken === undefined) await this.#wire.end()
    else this.#wire.cut(this.broken)
  }

  async #run(text: string): Promise<boolean> {
    try {
      if (this.broken !== undefined) throw this.broken
      await this.#wire.run(text)
      return true
    } catch (error) {
      // Even if the server merely refused: a connection that cannot LISTEN is of no use here.
      this.destroy(toError(error))
      return false
    }
  }
}

/** Quotes an identifier. */
function quoted(channel: string): string {
  return `"${channel.replaceAll('"', '""')}"`
}
