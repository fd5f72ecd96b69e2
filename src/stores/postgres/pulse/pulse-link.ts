/**
 * The heartbeat thread's one connection to PostgreSQL: it renews leases, and runs LISTEN for the main thread
 * (`listen-service.ts`).
 */
import type { MessagePort } from 'node:worker_threads'
import type { Clock } from '../../../std/clock.ts'
import { withDeadline } from '../../../std/deadline.ts'
import { formatDuration } from '../../../std/duration.ts'
import { cancelRunning } from '../pg/cancel.ts'
import { Connector, cut, loadPg, unreachable, type OwnClient } from '../pg/driver.ts'
import { PgConnection } from '../pg/connection.ts'
import { explain } from '../server-errors.ts'
import type { PulseLink } from '../../pulse/keeper.ts'
import { ListenService } from './listen-service.ts'

export interface PostgresPulse {
  readonly connectionString: string
  /** Renews the worker $1, and returns a row if there is one. */
  readonly renew: string
}

/** How long connecting for LISTEN may take. */
const CONNECT_MS = 5_000

export class PostgresPulseLink implements PulseLink {
  readonly #connector: Connector
  readonly #renewal: string
  readonly #clock: Clock
  #connection: PgConnection<OwnClient> | undefined
  #connecting: Promise<PgConnection<OwnClient>> | undefined
  /** One at a time: the main thread asks for another only when it is done with this one. */
  #service: ListenService | undefined

  constructor({ connectionString, renew }: PostgresPulse, clock: Clock) {
    this.#connector = new Connector(loadPg, { connectionString, applicationName: 'holdfast pulse' }, clock)
    this.#renewal = renew
    this.#clock = clock
  }

  async renew(worker: string, leaseMs: number): Promise<boolean> {
    try {
      const connection = await this.#take(leaseMs)
      const answerMs = leaseMs / 3
      const renewal = connection.run({ text: this.#renewal, values: [worker] }, answerMs)
      // Counted from now, not from when it is sent: a statement of the main thread may still be waiting for its answer.
      const { rows } = await withDeadline(this.#clock, answerMs, renewal, () => {
        const late = unreachable(`The database did not renew a lease within ${formatDuration(answerMs)}.`)
        connection.destroy(late)
        return late
      })
      return rows.length > 0
    } catch (error) {
      throw explain(error)
    }
  }

  listen(port: MessagePort): void {
    this.#service?.end()
    const service = new ListenService(port)
    this.#service = service
    this.#take(CONNECT_MS).then(
      (connection) => service.serve(connection),
      (error: unknown) => service.fail(error),
    )
  }

  async close(): Promise<void> {
    const connection = this.#connection ?? (await this.#connecting?.catch(() => undefined))
    this.#connection = undefined
    if (connection === undefined) return
    if (connection.broken === undefined) await this.#connector.end(connection.client)
    else connection.destroy(connection.broken)
  }

  async #take(leaseMs: number): Promise<PgConnection<OwnClient>> {
    if (this.#connection?.broken !== undefined) {
      this.#connection.destroy(this.#connection.broken)
      this.#connection = undefined
    }
    if (this.#connection !== undefined) return this.#connection
    this.#connecting ??= this.#connect(leaseMs).finally(() => (this.#connecting = undefined))
    return this.#connecting
  }

  async #connect(leaseMs: number): Promise<PgConnection<OwnClient>> {
    const late = new AbortController()
    const callOff = this.#clock.after(leaseMs, () =>
      late.abort(unreachable('The database did not accept a connection within the lease.')),
    )
    try {
      const client = await this.#connector.connect(late.signal)
      const connection = new PgConnection(client, this.#clock, (busy) => {
        if (busy) void cancelRunning(this.#clock, client)
        cut(client)
      })
      client.on('notification', (notice) => this.#service?.hear(connection, notice))
      client.on('end', () => this.#service?.lost(connection))
      this.#connection = connection
      return connection
    } finally {
      callOff()
    }
  }
}
