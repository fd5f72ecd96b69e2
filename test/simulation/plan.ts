/** What one run is like, drawn from its seed: how many processes, how they are set, how bad the weather is. */
import type { Random } from '../../src/std/random.ts'
import { CALM, type NetworkFaults, type SimulatedSchedule } from './network.ts'
import { between, chance, pick } from './world.ts'

export interface RunPlan {
  readonly durationMs: number
  /** From here on nothing more is broken on purpose. */
  readonly healedFromMs: number
  /** From here on nothing is enqueued any more. */
  readonly quietFromMs: number
  readonly queues: readonly string[]
  readonly workers: number
  readonly clients: number
  readonly concurrency: number
  readonly leaseMs: number
  readonly pollMs: number
  readonly graceMs: number
  readonly storeTimeoutMs: number
  /** Jobs of a few milliseconds that come in crowds, so that workers claim ahead of their free slots. */
  readonly brisk: boolean
  /** A schedule beside what clients enqueue; null for none. */
  readonly schedule: SimulatedSchedule | null
  /** How many jobs a handler is given at a time, and how long it waits for them; null for one at a time. */
  readonly batch: { readonly size: number; readonly fill: number; readonly wait: number } | null
  /** Mean pause between two enqueues of one client. */
  readonly enqueueEveryMs: number
  /** Whether the store hands jobs over as they are enqueued. */
  readonly handsOver: boolean
  readonly network: NetworkFaults
  /** Mean pauses between two faults of a kind, over the whole fleet; Infinity for never. */
  readonly every: Readonly<Record<FaultKind, number>>
  readonly maxOffsetMs: number
  /** Clocks go too fast or too slow by at most this share. */
  readonly maxDrift: number
}

export type FaultKind = 'freeze' | 'block' | 'kill' | 'outage' | 'cut-off' | 'restart' | 'pause'

/** Of the workload: how many jobs come at once, and how long one takes in all its attempts. */
const MEAN_BURST = 4
const MEAN_WORK_MS = 3_000

/** Seeds from here on also have workers with so many slots that they make two calls at once. */
export const WIDE_FROM_SEED = 501
const WIDE = 150
/** Seeds from here on also have a schedule. */
export const SCHEDULE_FROM_SEED = 601
/** Seeds from here on have a batch handler in place of a plain one. */
export const BATCH_FROM_SEED = 651
/** Seeds from here on also have a store that hands jobs over. */
export const HAND_OVER_FROM_SEED = 701

/** Each run leaves some kinds out: a fault that always comes together with others hides what it alone would show. */
export function drawPlan(seed: number, random: Random, minutes: number): RunPlan {
  const durationMs = minutes * 60_000
  const leaseMs = pick(random, [2_000, 5_000, 10_000, 30_000])
  const badNetwork = chance(random, 0.6)
  const workers = pick(random, [1, 2, 3, 4])
  const clients = pick(random, [1, 2])
  const wide = seed >= WIDE_FROM_SEED && chance(random, 0.5)
  const brisk = wide || chance(random, 0.25)
  const slots = pick(random, [1, 2, 5, 10])
  // A fleet that can never keep up would only show that waiting takes time.
  const load = between(random, 0.1, 0.5)
  const enqueueEveryMs = (clients * MEAN_BURST * MEAN_WORK_MS) / (workers * slots * load)
  const every = (meanMs: number, probability: number): number =>
    chance(random, probability) ? meanMs * between(random, 0.5, 2) : Infinity
  const schedule = seed >= SCHEDULE_FROM_SEED ? { everyMs: pick(random, [5_000, 20_000, 60_000]) } : null
  const batch = seed >= BATCH_FROM_SEED ? drawBatch(random) : null
  const handsOver = seed >= HAND_OVER_FROM_SEED && chance(random, 0.6)
  return {
    durationMs,
    schedule,
    batch: handsOver && chance(random, 0.8) ? null : batch,
    handsOver,
    healedFromMs: durationMs * (2 / 3),
    quietFromMs: durationMs * 0.85,
    queues: ['a', 'b', 'c'].slice(0, pick(random, [1, 1, 2, 3])),
    workers,
    clients,
    concurrency: wide ? WIDE : slots,
    leaseMs,
    pollMs: pick(random, [200, 1_000, 1_000, 3_000]),
    graceMs: pick(random, [0, 1_000, 10_000]),
    storeTimeoutMs: pick(random, [2_000, 10_000]),
    brisk,
    enqueueEveryMs,
    network: badNetwork
      ? {
          dropRequest: between(random, 0, 0.03),
          dropReply: between(random, 0, 0.03),
          dropHint: between(random, 0, 0.5),
          delayMs: pick(random, [1, 10, 100]),
          slow: between(random, 0, 0.03),
          slowMs: pick(random, [500, 3_000, 15_000]),
        }
      : CALM,
    every: {
      freeze: every(60_000, 0.5),
      block: every(40_000, 0.5),
      kill: every(90_000, 0.6),
      restart: every(120_000, 0.4),
      outage: every(150_000, 0.4),
      'cut-off': every(100_000, 0.4),
      pause: every(120_000, 0.3),
    },
    maxOffsetMs: pick(random, [0, 1_000, 3_600_000]),
    maxDrift: pick(random, [0, 0.0005, 0.01]),
  }
}

function drawBatch(random: Random): RunPlan['batch'] {
  const size = pick(random, [2, 5, 20])
  return { size, fill: pick(random, [1, 2]), wait: pick(random, [0, 500, 3_000]) }
}
