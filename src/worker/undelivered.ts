/**
 * What the store may have leased to a worker without its knowledge. The answer to a claim can get lost: then a heartbeat
 * finds a lease that the worker knows nothing of, and gives it back once no answer can bring it any more.
 */
import type { Token } from '../job/ids.ts'
import { LATEST_ARRIVAL_MS } from '../stores/store.ts'

export class UndeliveredLeases {
  /** A lease that has been seen for longer than this has no answer in flight. */
  readonly #provenMs: number
  /** Claims without an answer, and when they were given up. */
  #lostClaims: readonly { readonly jobs: number; readonly atMs: number }[] = []
  /** Leases in our name that we know nothing of, and since when. */
  readonly #seen = new Map<Token, number>()

  constructor(callTimeoutMs: number) {
    this.#provenMs = 2 * callTimeoutMs
  }

  /** Most jobs that may be leased without our knowledge. */
  get jobs(): number {
    return this.#lostClaims.reduce((sum, { jobs }) => sum + jobs, 0)
  }

  /** A claim for this many jobs was given up. */
  lostClaim(jobs: number, atMs: number): void {
    this.#lostClaims = [...this.#lostClaims, { jobs, atMs }]
  }

  /** Leases to release: their claim's answer will never arrive. */
  proven(isKnown: (token: Token) => boolean, nowMs: number): Token[] {
    return [...this.#seen]
      .filter(([token, sinceMs]) => nowMs - sinceMs > this.#provenMs && !isKnown(token))
      .map(([token]) => token)
  }

  /** A heartbeat that was sent at this time found these leases. */
  note(tokens: readonly Token[], isKnown: (token: Token) => boolean, sentMs: number): void {
    const unknown = new Set(tokens.filter((token) => !isKnown(token)))
    for (const token of this.#seen.keys()) if (!unknown.has(token)) this.#seen.delete(token)
    for (const token of unknown) if (!this.#seen.has(token)) this.#seen.set(token, sentMs)
    this.#forgetLostClaims(sentMs)
  }

  /**
   * A claim may reach the store long after it was given up. It is forgotten only after a heartbeat that was sent when the
   * claim could no longer arrive found no lease that this process does not know.
   */
  #forgetLostClaims(sentMs: number): void {
    if (this.#lostClaims.length === 0 || this.#seen.size > 0) return
    this.#lostClaims = this.#lostClaims.filter(({ atMs }) => sentMs - atMs < LATEST_ARRIVAL_MS)
  }

  /** A new incarnation begins, with no leases. */
  clear(): void {
    this.#lostClaims = []
    this.#seen.clear()
  }
}
