/**
 * A store named by a URL. Its code is loaded when it is opened, so that a worker does not keep the code of three other
 * stores in memory (5 MB). Only `transactions` is read from a store before that.
 */
import { HoldfastError } from '../errors.ts'
import type { Store, Transactions } from './store.ts'

/** The properties of a store known before its code is loaded. */
export interface LazyStoreParts {
  readonly kind: string
  readonly load: () => Promise<Store>
  /** Whether it has transactions. */
  readonly transactional: boolean
}

export class LazyStore implements Store {
  readonly kind: string
  readonly transactions?: Transactions
  readonly #load: () => Promise<Store>
  #loading: Promise<Store> | undefined
  #store: Store | undefined
  #closed = false

  constructor({ kind, load, transactional }: LazyStoreParts) {
    this.kind = kind
    this.#load = load
    if (transactional) this.transactions = lazyTransactions(() => this.#opened.transactions)
  }

  async open(): Promise<void> {
    const store = await this.#loaded()
    if (this.#closed) await store.close()
    return store.open()
  }

  async close(): Promise<void> {
    this.#closed = true
    const store = await this.#loading?.catch(() => undefined)
    await store?.close()
  }

  enqueue(...args: Parameters<Store['enqueue']>): ReturnType<Store['enqueue']> {
    return this.#opened.enqueue(...args)
  }

  register(...args: Parameters<Store['register']>): ReturnType<Store['register']> {
    return this.#opened.register(...args)
  }

  retire(...args: Parameters<Store['retire']>): ReturnType<Store['retire']> {
    return this.#opened.retire(...args)
  }

  cycle(...args: Parameters<Store['cycle']>): ReturnType<Store['cycle']> {
    return this.#opened.cycle(...args)
  }

  heartbeat(...args: Parameters<Store['heartbeat']>): ReturnType<Store['heartbeat']> {
    return this.#opened.heartbeat(...args)
  }

  keepAlive(
    ...args: Parameters<NonNullable<Store['keepAlive']>>
  ): ReturnType<NonNullable<Store['keepAlive']>> {
    return this.#opened.keepAlive?.(...args) ?? null
  }

  subscribe(...args: Parameters<Store['subscribe']>): ReturnType<Store['subscribe']> {
    return this.#opened.subscribe(...args)
  }

  get upkeep(): Store['upkeep'] {
    return this.#opened.upkeep
  }

  get schedules(): Store['schedules'] {
    return this.#opened.schedules
  }

  get notes(): Store['notes'] {
    return this.#opened.notes
  }

  get admin(): Store['admin'] {
    return this.#opened.admin
  }

  get #opened(): Store {
    if (this.#store !== undefined) return this.#store
    throw new HoldfastError('HF_STORE_UNREACHABLE', `The ${this.kind} store has not been opened.`)
  }

  async #loaded(): Promise<Store> {
    this.#loading ??= this.#load().catch((error: unknown) => {
      this.#loading = undefined
      throw error
    })
    this.#store = await this.#loading
    return this.#store
  }
}

/** They may be taken from the store before it is opened, and are used after that. */
function lazyTransactions(of: () => Transactions | undefined): Transactions {
  const opened = (): Transactions => {
    const transactions = of()
    if (transactions !== undefined) return transactions
    throw new TypeError('the store has no transactions')
  }
  return { commit: (request, write) => opened().commit(request, write) }
}
