/** The listeners for wake-ups in this process. */
import type { WakeUp } from '../store.ts'

type Listener = (hint: WakeUp) => void

export class Listeners {
  readonly #all = new Set<Listener>()

  get size(): number {
    return this.#all.size
  }

  tell(hint: WakeUp): void {
    for (const listener of this.#all) {
      try {
        listener(hint)
      } catch {
        // A hint is best effort, and the step it tells of has happened.
      }
    }
  }

  /** Returns how to remove it; that answers whether it was the last one. */
  add(listener: Listener): () => boolean {
    // A wrapper of its own: one function subscribed twice is two subscriptions.
    const own: Listener = (hint) => listener(hint)
    this.#all.add(own)
    return () => this.#all.delete(own) && this.#all.size === 0
  }

  clear(): void {
    this.#all.clear()
  }
}
