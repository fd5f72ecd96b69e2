/**
 * The kinds of notes that Holdfast keeps in a store, in addition to `SLOW_WORKER`, which is part of the store's
 * contract.
 */

/** Subscriptions: the ids are the subscribers' names. */
export const SUBSCRIBER = 'subscriber'

/** The status of each worker in the fleet. */
export const WORKER = 'worker'

/** Tells the leader that a dead-letter handler exists, with the parts of its jobs. */
export const DEAD_LETTER_HANDLER = { kind: 'dead-letter-handler', id: 'handler' } as const

/** The time up to which dead letters were handed to their handler. */
export const DEAD_LETTER_CURSOR = { kind: 'cursor', id: 'dead-letters' } as const

/** The newest reading of the store's clock. */
export const STORE_CLOCK = { kind: 'store-clock', id: 'newest' } as const
