/**
 * Notices a connection whose other end is gone, long before the deadlines of its calls. Silence alone proves
 * nothing: Redis answers one command at a time, and a long script or a slow disk delays all of them. So after two
 * seconds without a byte the same server is asked on a second connection, and only if it answers there, while the first
 * is still silent, is the first one given up. A server that is only slow gets more time, and its calls stay pending: a
 * claim that is given up may already hold jobs.
 */
import type { Clock } from '../../std/clock.ts'
import { withDeadline } from '../../std/deadline.ts'
import type { RedisClient } from './driver.ts'
import type { Line } from './line.ts'
import { unreachable } from './server-errors.ts'

const LOOK_EVERY_MS = 500
/** Number of looks without a byte until the connection is suspect. Not a time, because a blocked loop looks late. */
const SILENT_LOOKS = 4
/** A working connection answers at once; a failed probe is repeated. */
const PROOF_MS = 1_000
/**
 * A script, because what delays our scripts (a pause for writes, say) delays this as well; a PING would get through.
 */
const PROOF = ['return 1', 0] as const

export class LineWatch {
  readonly #line: Line
  readonly #clock: Clock
  readonly #vigils = new WeakMap<RedisClient, Vigil>()
  #hangUp: (() => void) | undefined
  #closed = false

  constructor(line: Line, clock: Clock) {
    this.#line = line
    this.#clock = clock
  }

  /** From now on an answer is awaited on it, until what this returns is called. */
  awaits(client: RedisClient): () => void {
    let vigil = this.#vigils.get(client)
    if (vigil === undefined) {
      vigil = new Vigil(client, this.#clock, (isSilent) => this.#suspect(client, isSilent))
      this.#vigils.set(client, vigil)
    }
    vigil.begin()
    return () => vigil.end()
  }

  /** Gives up the probe on the second connection. */
  close(): void {
    this.#closed = true
    this.#hangUp?.()
  }

  async #suspect(client: RedisClient, isSilent: () => boolean): Promise<void> {
    if (this.#closed || this.#hangUp !== undefined) return
    if ((await this.#answersElsewhere()) && isSilent()) this.#line.drop(client)
  }

  async #answersElsewhere(): Promise<boolean> {
    const twin = this.#line.twin()
    let client: RedisClient | undefined
    const hangUp = (): void => {
      if (client !== undefined) twin.drop(client)
      void twin.close()
    }
    this.#hangUp = hangUp
    const ask = async (): Promise<unknown> => {
      client = await twin.client()
      return client.call('EVAL', PROOF)
    }
    try {
      await withDeadline(this.#clock, PROOF_MS, ask(), () => unreachable('Redis does not answer.'))
      return true
    } catch {
      return false
    } finally {
      hangUp()
      this.#hangUp = undefined
    }
  }
}

/** Looks at one connection for as long as answers are awaited on it. */
class Vigil {
  readonly #client: RedisClient
  readonly #clock: Clock
  readonly #suspect: (isSilent: () => boolean) => Promise<void>
  #awaited = 0
  #silentLooks = 0
  #bytes: number | undefined
  #isLooking = false
  #callOff = (): void => undefined

  constructor(client: RedisClient, clock: Clock, suspect: (isSilent: () => boolean) => Promise<void>) {
    this.#client = client
    this.#clock = clock
    this.#suspect = suspect
  }

  begin(): void {
    if (this.#awaited++ > 0) return
    this.#hearAnew()
    if (!this.#isLooking) this.#lookLater()
  }

  end(): void {
    if (--this.#awaited === 0) this.#callOff()
  }

  #lookLater(): void {
    this.#callOff = this.#clock.after(LOOK_EVERY_MS, () => void this.#lookNow())
  }

  async #lookNow(): Promise<void> {
    this.#isLooking = true
    await this.#look()
    this.#isLooking = false
    // Meanwhile the waiting calls may have ended, or new ones begun.
    if (this.#awaited > 0 && this.#client.status === 'ready') this.#lookLater()
  }

  async #look(): Promise<void> {
    const { stream } = this.#client
    // No answer can be expected while a large request is still being sent.
    if (stream?.bytesRead !== this.#bytes || (stream?.writableLength ?? 0) > 0) this.#hearAnew()
    else this.#silentLooks++
    const bytes = this.#bytes
    if (this.#silentLooks < SILENT_LOOKS || bytes === undefined) return
    await this.#suspect(() => this.#awaited > 0 && this.#client.stream?.bytesRead === bytes)
  }

  #hearAnew(): void {
    this.#silentLooks = 0
    this.#bytes = this.#client.stream?.bytesRead
  }
}
