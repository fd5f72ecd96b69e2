/**
 * Typed events in the process. A listener that throws or rejects affects neither the emitter nor other listeners: its
 * error goes to `onListenerError`.
 */
import { isThenable } from './thenable.ts'

export type Listener<Event> = (event: Event) => void | Promise<void>

export class Emitter<Events extends object> {
  readonly #listeners = new Map<keyof Events, readonly Listener<never>[]>()
  readonly #onListenerError: (error: unknown, event: keyof Events) => void

  constructor(onListenerError: (error: unknown, event: keyof Events) => void) {
    this.#onListenerError = onListenerError
  }

  /** Returns a function that removes the listener. */
  on<Name extends keyof Events>(name: Name, listener: Listener<Events[Name]>): () => void {
    // Wrapped, so that a function registered twice is removed one registration at a time.
    const own: Listener<Events[Name]> = (event) => listener(event)
    this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), own])
    return () => {
      const left = (this.#listeners.get(name) ?? []).filter((other) => other !== own)
      if (left.length > 0) this.#listeners.set(name, left)
      else this.#listeners.delete(name)
    }
  }

  /** Whether there are listeners, so that a hot path can skip building the event. */
  has(name: keyof Events): boolean {
    return this.#listeners.has(name)
  }

  emit<Name extends keyof Events>(name: Name, event: Events[Name]): void {
    const listeners = this.#listeners.get(name) as readonly Listener<Events[Name]>[] | undefined
    if (listeners === undefined) return
    for (const listener of listeners) {
      try {
        const pending = listener(event)
        // Promises of any realm: any unhandled rejection would end the process.
        if (isThenable(pending))
          pending.then(undefined, (error: unknown) => this.#onListenerError(error, name))
      } catch (error) {
        this.#onListenerError(error, name)
      }
    }
  }
}
