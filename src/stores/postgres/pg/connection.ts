/**
 * One connection in use: one statement at a time, each with a deadline. A statement that is not answered in time ends
 * its connection, because the next answer could not be attributed; so does an error that ends the connection on the
 * server. A broken connection reports it, and is never used again.
 */
import type { Clock } from '../../../std/clock.ts'
import { withDeadline } from '../../../std/deadline.ts'
import { formatDuration } from '../../../std/duration.ts'
import { endsConnection } from '../server-errors.ts'
import { unreachable } from './driver.ts'
import type { PgClient, PgQuery, PgResult } from './driver.ts'

export class PgConnection<Client extends PgClient = PgClient> {
  readonly client: Client
  readonly #clock: Clock
  readonly #drop: (busy: boolean) => void
  readonly #onError = (error: Error): void => this.#fail(error)
  #last: Promise<unknown> = Promise.resolve()
  /** Why the connection can no longer be used. */
  #broken: Error | undefined
  #dropped = false
  #busy = false

  /** `drop` ends the connection at once, perhaps in the middle of a statement; it is called at most once. */
  constructor(client: Client, clock: Clock, drop: (busy: boolean) => void) {
    this.client = client
    this.#clock = clock
    this.#drop = drop
    client.on('error', this.#onError)
  }

  /** Whether it can be reused: it works, and is not in a transaction. */
  get reusable(): boolean {
    return this.#broken === undefined && (this.client.getTransactionStatus?.() ?? 'I') === 'I'
  }

  get broken(): Error | undefined {
    return this.#broken
  }

  /** In the order of the calls: `pg` would queue them as well, but their deadlines would run while they wait. */
  run(query: PgQuery, timeoutMs: number): Promise<PgResult> {
    const answer = this.#last.then(() => this.#send(query, timeoutMs))
    this.#last = answer.catch(() => undefined)
    return answer
  }

  /** Ends the connection now; current and later calls reject with this reason. */
  destroy(reason: Error): void {
    this.#fail(reason)
    if (this.#dropped) return
    this.#dropped = true
    this.#drop(this.#busy)
  }

  /** Call this before the connection goes back to its pool. */
  detach(): void {
    this.#dropped = true
    this.client.removeListener('error', this.#onError)
  }

  async #send(query: PgQuery, timeoutMs: number): Promise<PgResult> {
    if (this.#broken !== undefined) throw this.#broken
    this.#busy = true
    try {
      return await withDeadline(this.#clock, timeoutMs, this.client.query(query), () => {
        const error = unreachable(
          `The database did not answer within ${formatDuration(timeoutMs)}; that connection was given up.`,
        )
        this.destroy(error)
        return error
      })
    } catch (error) {
      if (error instanceof Error && endsConnection(error)) this.#fail(error)
      // If this side ended the connection, the socket's error is not the reason.
      throw this.#dropped && this.#broken !== undefined ? this.#broken : error
    } finally {
      this.#busy = false
    }
  }

  #fail(error: Error): void {
    this.#broken ??= error
  }
}
