/** One side of two calls that meet inside the database, played by hand: what it locks stays locked until it commits. */
import pg from 'pg'
import type { StoreUnderTest } from '../../../src/stores/conformance/index.ts'
import { render, type Names } from '../../../src/stores/postgres/names.ts'
import { withDeadline } from '../../../src/std/deadline.ts'
import { systemClock } from '../../../src/std/clock.ts'

export interface CrossingSite {
  readonly under: StoreUnderTest
  readonly names: Names
  readonly url: string
}

/** Tests by title. */
export type Crossings = Readonly<Record<string, (site: CrossingSite) => Promise<void>>>

export const WAIT_MS = 5_000
const LOWEST = '-1000000000000000'
const HIGHEST = '1000000000000000'

/** Claims one job of priority 0: worker, queue. */
export const CLAIM = `select holdfast.cycle($1, null, null, null, null, null, null, null, null, false, $2, 1, '{0}',
  '{${LOWEST}}', '{${HIGHEST}}')`
/** One call by hand, in a transaction of its own that stays open until it is committed. */
export class Held {
  readonly #client: pg.Client
  readonly #names: Names

  constructor({ url, names }: CrossingSite) {
    this.#client = new pg.Client({ connectionString: url })
    this.#names = names
  }

  async begin(text: string, values: readonly unknown[]): Promise<void> {
    await this.#client.connect()
    await this.#client.query('begin')
    await this.run(text, values)
  }

  async run(text: string, values: readonly unknown[]): Promise<void> {
    await this.read(text, values)
  }

  async read(text: string, values: readonly unknown[]): Promise<unknown[]> {
    return (await this.#client.query(render(text, this.#names), [...values])).rows
  }

  /** Resolves when somebody waits for this transaction. */
  async blocksSomebody(): Promise<void> {
    const look = async (): Promise<void> => {
      for (;;) {
        const { rows } = await this.#client.query(
          `select from pg_stat_activity where pg_backend_pid() = any (pg_blocking_pids(pid))`,
        )
        if (rows.length > 0) return
      }
    }
    await withDeadline(systemClock, WAIT_MS, look(), () => new Error('nobody waits'))
  }

  /** Runs the steps once this transaction is what the call waits for, commits, and returns what the call does. */
  async meets<T>(call: Promise<T>, steps: () => Promise<void>): Promise<T> {
    const [answer] = await Promise.all([
      call,
      this.blocksSomebody()
        .then(steps)
        .then(() => this.commit()),
    ])
    return answer
  }

  /** Commits once it is what this call waits for, and returns what the call does. */
  async holdsUp<T>(call: Promise<T>): Promise<T> {
    return this.meets(call, async () => undefined)
  }

  async commit(): Promise<void> {
    await this.#client.query('commit')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.end()
  }
}
