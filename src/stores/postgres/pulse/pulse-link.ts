/** One renewal in PostgreSQL, on the thread's one connection. */
import type { Clock } from '../../../std/clock.ts'
import { cancelRunning } from '../pg/cancel.ts'
import { Connector, cut, loadPg, unreachable, type OwnClient } from '../pg/driver.ts'
import { Session } from '../pg/session.ts'
import type { PulseLink } from '../../pulse/keeper.ts'

export interface PostgresPulse {
  readonly connectionString: string
  /** Renews the worker $1, and returns a row if there is one. */
  readonly renew: string
}

export class PostgresPulseLink implements PulseLink {
  readonly #connector: Connector
  readonly #renewal: string
  readonly #clock: Clock
  #session: Session<OwnClient> | undefined
  #connecting: Promise<Session<OwnClient>> | undefined

  constructor({ connectionString, renew }: PostgresPulse, clock: Clock) {
    this.#connector = new Connector(loadPg, { connectionString, applicationName: 'holdfast pulse' }, clock)
    this.#renewal = renew
    this.#clock = clock
  }

  async renew(worker: string, leaseMs: number): Promise<boolean> {
    const session = await this.#take(leaseMs)
    const { rows } = await session.run({ text: this.#renewal, values: [worker] }, leaseMs / 3)
    return rows.length > 0
  }

  async close(): Promise<void> {
    const session = this.#session ?? (await this.#connecting?.catch(() => undefined))
    this.#session = undefined
    if (session === undefined) return
    if (session.broken === undefined) await this.#connector.end(session.client)
    else session.destroy(session.broken)
  }

  async #take(leaseMs: number): Promise<Session<OwnClient>> {
    if (this.#session?.broken !== undefined) {
      this.#session.destroy(this.#session.broken)
      this.#session = undefined
    }
    if (this.#session !== undefined) return this.#session
    this.#connecting ??= this.#connect(leaseMs).finally(() => (this.#connecting = undefined))
    return this.#connecting
  }

  async #connect(leaseMs: number): Promise<Session<OwnClient>> {
    const late = new AbortController()
    const callOff = this.#clock.after(leaseMs, () =>
      late.abort(unreachable('The database did not accept a connection within the lease.')),
    )
    try {
      const client = await this.#connector.connect(late.signal)
      this.#session = new Session(client, this.#clock, (busy) => {
        if (busy) void cancelRunning(this.#clock, client)
        cut(client)
      })
      return this.#session
    } finally {
      callOff()
    }
  }
}
