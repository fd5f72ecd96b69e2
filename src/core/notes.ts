/** The kinds of notes that Holdfast keeps in a store, beside `SLOW_WORKER`, which is part of the store's contract. */

/** Subscriptions: the ids are the subscribers' names. */
export const SUBSCRIBER = 'subscriber'

/** What each worker of the fleet tells about itself. */
export const WORKER = 'worker'

/** Tells whoever leads that a handler of dead letters exists, and what its jobs are made of. */
export const DEAD_LETTER_HANDLER = { kind: 'dead-letter-handler', id: 'handler' } as const

/** Up to when dead letters were handed to their handler. */
export const DEAD_LETTER_CURSOR = { kind: 'cursor', id: 'dead-letters' } as const

/** The newest time that the store told. */
export const STORE_CLOCK = { kind: 'store-clock', id: 'newest' } as const
