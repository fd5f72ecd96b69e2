/**
 * An abort signal that is created on first use. Creating an AbortSignal costs about 5 µs in Node 20, more than
 * everything else about a no-op job, and most handlers never use theirs.
 */
export class LazyAbort {
  #controller: AbortController | undefined
  #reason: Error | undefined

  get aborted(): boolean {
    return this.#reason !== undefined
  }

  get reason(): Error | undefined {
    return this.#reason
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#reason !== undefined) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  /** The first reason wins. */
  abort(reason: Error): void {
    if (this.#reason !== undefined) return
    this.#reason = reason
    this.#controller?.abort(reason)
  }
}
