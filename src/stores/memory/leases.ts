/** Workers and their leases. The lease record is the fence: once it is gone, its token settles nothing. */
import type { Token, WorkerId } from '../../job/ids.ts'
import type { Entry, LeaseEntry } from './entry.ts'

interface WorkerEntry {
  leaseMs: number
  expiresAt: number
  /** Maximum number of its open jobs that may be running, as it promised; null if it promised nothing. */
  atOnce: number | null
  /** Greatest number of a heartbeat so far. */
  nth: number
}

export class Leases {
  readonly workers = new Map<WorkerId, WorkerEntry>()
  readonly #leases = new Map<Token, LeaseEntry>()
  /**
   * Revoked tokens. Never deleted, because they are rare. A lease that is gone for any other reason was fully settled.
   */
  readonly #revoked = new Set<Token>()
  #lastToken = 0

  get(token: Token): LeaseEntry | undefined {
    return this.#leases.get(token)
  }

  /** The job that is open at a position of the worker's lease, or why there is none. */
  openAt(worker: WorkerId, token: Token, position: number): Entry | 'already' | 'lost' {
    const lease = this.#leases.get(token)
    if (lease === undefined) {
      const wasGranted = token >= 1 && token <= this.#lastToken
      return wasGranted && !this.#revoked.has(token) ? 'already' : 'lost'
    }
    if (lease.worker !== worker) return 'lost'
    const entry = lease.open[position]
    return entry === undefined ? 'lost' : (entry ?? 'already')
  }

  /** Puts claimed jobs under a new token, greater than all earlier ones. */
  grant(worker: WorkerId, entries: readonly Entry[], nowMs: number): LeaseEntry {
    const token = ++this.#lastToken as Token
    const lease: LeaseEntry = { token, worker, claimedAt: nowMs, open: [...entries], left: entries.length }
    this.#leases.set(token, lease)
    entries.forEach((entry, position) => {
      entry.lease = lease
      entry.position = position
    })
    return lease
  }

  /** Ends one position, and the lease with its last one. */
  close(entry: Entry): void {
    const { lease } = entry
    if (lease === null || lease.open[entry.position] !== entry)
      throw new Error(`job ${entry.job.id} is under no lease`)
    lease.open[entry.position] = null
    entry.lease = null
    if (--lease.left === 0) this.#leases.delete(lease.token)
  }

  /** Takes the lease away from its worker and returns what it still held. */
  revoke(lease: LeaseEntry): Entry[] {
    const entries = lease.open.filter((entry) => entry !== null)
    for (const entry of entries) entry.lease = null
    this.#leases.delete(lease.token)
    this.#revoked.add(lease.token)
    return entries
  }

  of(worker: WorkerId): LeaseEntry[] {
    return [...this.#leases.values()].filter((lease) => lease.worker === worker)
  }

  /** Leases whose worker is expired or gone. */
  orphaned(nowMs: number): LeaseEntry[] {
    return [...this.#leases.values()].filter((lease) => {
      const worker = this.workers.get(lease.worker)
      return worker === undefined || worker.expiresAt <= nowMs
    })
  }
}
