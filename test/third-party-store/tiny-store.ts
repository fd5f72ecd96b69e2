/** A store as somebody outside of Holdfast would write it: everything in maps, and every step between two awaits. */
import { HoldfastError, type Store } from 'holdfast/store'
import { Book } from './book.ts'
import { cycle, enqueue, heartbeat, KIND } from './core.ts'
import { adminOf, notesOf, schedulesOf, upkeepOf, type Step } from './facets.ts'

export interface TinyStoreOptions {
  /** The store's clock, in ms since 1970. @default Date.now */
  readonly now?: () => number
}

export function tinyStore({ now = Date.now }: TinyStoreOptions = {}): Store {
  const book = new Book(now)
  let isClosed = false
  const step: Step = async (body) => {
    if (isClosed) throw new HoldfastError('HF_CLOSED', 'The tiny store is closed.')
    return body()
  }
  return {
    kind: KIND,
    open: () => step(() => undefined),
    close: async () => {
      isClosed = true
    },
    enqueue: (flush) => step(() => enqueue(book, flush)),
    register: (worker, leaseMs, atOnce) =>
      step(() => {
        const lease = { leaseMs, expiresAt: book.now() + leaseMs }
        const known = book.workers.get(worker)
        if (known === undefined) book.workers.set(worker, { ...lease, atOnce: atOnce ?? null, nth: 0 })
        else Object.assign(known, lease)
      }),
    retire: (worker) => step(() => void book.workers.delete(worker)),
    cycle: (request) => step(() => cycle(book, request)),
    heartbeat: (request) => step(() => heartbeat(book, request)),
    subscribe: (listener) =>
      step(() => {
        const own: typeof listener = (hint) => listener(hint)
        book.listeners.add(own)
        return async () => void book.listeners.delete(own)
      }),
    upkeep: upkeepOf(book, step),
    schedules: schedulesOf(book, step),
    notes: notesOf(book, step),
    admin: adminOf(book, step),
  }
}
