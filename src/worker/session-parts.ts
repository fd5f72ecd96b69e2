/** What a session needs, and what one call through it carries and brings. */
import type { Core } from '../core/core.ts'
import type { Token } from '../job/ids.ts'
import type {
  CancelNotice,
  ClaimRequest,
  Lease,
  Report,
  SettleAnswer,
  SettleRequest,
} from '../stores/store.ts'
import type { Attempt } from './attempt.ts'
import type { HandedLease } from './offers.ts'
import type { PlannedOffer } from './plan.ts'

export interface SessionParts {
  readonly core: Core
  readonly leaseMs: number
  readonly callTimeoutMs: number
  /** The attempts that run in this worker's name. */
  readonly running: ReadonlySet<Attempt>
  /** The tokens of attempts that have no settlement yet. */
  readonly openTokens: () => ReadonlySet<Token>
  /** These leases are gone: what runs under them must stop, and nothing of it may be written. */
  readonly onLost: (tokens: ReadonlySet<Token>) => void
  /** True if the handler of that job is running: the store learns that the cancel took effect. */
  readonly onCancel: (notice: CancelNotice) => boolean
  /** A queue was paused at this time or before: release jobs that were claimed from it earlier and not started. */
  readonly onPaused?: (queue: string, heardMs: number) => void
  /** A heartbeat was answered, and its notices were passed on. */
  readonly onBeat?: () => void
  /** How many jobs can be running at once, see `Store.register`. Missing if every job that is held may be. */
  readonly atOnce?: { readonly sending: () => number; readonly answered: (sent: number) => void }
}

/** What one call settles, claims and reports. */
export interface SessionRequest {
  readonly settle: readonly SettleRequest[]
  readonly claim: ClaimRequest | null
  readonly reports?: readonly Report[]
  /** Missing for a caller that takes no hand-offs. */
  readonly offer?: PlannedOffer | null
}

export interface SessionAnswer {
  /** False if the incarnation that claimed is gone: nothing was taken, which differs from empty. */
  readonly alive: boolean
  readonly settled: readonly SettleAnswer[]
  readonly leases: readonly Lease[]
  /** When it was asked. */
  readonly sentMs: number
  /** Whether its offer is open. */
  readonly offered: boolean
  /** What was handed over under it meanwhile. */
  readonly handed: readonly HandedLease[]
}
