/** The bounds that a history is held against. They belong to the run that made it: its leases, its sweeps, its load. */
export interface Bounds {
  /** How long a worker's lease lasts; also how long a rescuer watches the store before it takes anything. @default 30_000 */
  readonly leaseMs: number
  /** The longest time between two rescues. @default 5_000 */
  readonly sweepMs: number
  /** What any step may take on top. @default 1_000 */
  readonly epsilonMs: number
  /** L1: until another node does the upkeep after one that did is gone. @default leaseMs */
  readonly failoverMs: number
  /** L1: until a worker has given back a lease that it was never told of. @default 3 × leaseMs */
  readonly undeliveredMs: number
  /** How long after its `unknown` a call may still act, where no `lease` event tells. @default 5_000 */
  readonly lateMs: number
  /** How long after its time a move may come into sight: a real store reads its clock before it commits. @default 0 */
  readonly visibleMs: number
  /** S17: how long a claimable job may be overtaken. @default 300 */
  readonly overtakeMs: number
  /** L2: how soon after an outage a worker asks for jobs again. @default 5_000 */
  readonly reclaimMs: number
  /** L3: how long a job may wait in the healed part while live workers read its queue. @default 60_000 */
  readonly starveMs: number
  /** L4: what a stop may take beyond its grace, for handlers that ignore their abort. @default 5_000 */
  readonly stopSlackMs: number
  /** For how long a repeated flush must be known: nobody repeats one later. @default 600_000 */
  readonly flushMemoryMs: number
  /** Violations kept with their events; the rest is only counted. @default 100 */
  readonly maxViolations: number
}

export type CheckOptions = Partial<Bounds>

export function readBounds(options: CheckOptions): Bounds {
  const leaseMs = options.leaseMs ?? 30_000
  return {
    leaseMs,
    sweepMs: 5_000,
    epsilonMs: 1_000,
    failoverMs: leaseMs,
    undeliveredMs: 3 * leaseMs,
    lateMs: 5_000,
    visibleMs: 0,
    overtakeMs: 300,
    reclaimMs: 5_000,
    starveMs: 60_000,
    stopSlackMs: 5_000,
    flushMemoryMs: 600_000,
    maxViolations: 100,
    ...options,
  }
}
