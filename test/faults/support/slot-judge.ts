/**
 * Judges what a soak of schedules has left behind. Every slot of each schedule has to be there once, from the first to the
 * last: the jobs in the store are the evidence, and what the store answered to those who fired them.
 */

export interface Slot {
  readonly schedule: string
  readonly slot: number
}

export interface FiredSlot extends Slot {
  /** When its job was written, by the store's clock. */
  readonly firedAtMs: number
}

export interface SlotEvidence {
  readonly schedules: readonly string[]
  readonly everyMs: number
  /** Since when all are at work, and until when: slots between must be there whatever came first and last. */
  readonly fromMs: number
  readonly toMs: number
  /** Of every job in the store. */
  readonly jobs: readonly FiredSlot[]
  /** Each time that somebody was answered that it had fired a slot. Who is killed tells no more, so some are missing. */
  readonly told: readonly Slot[]
  readonly faultsAtMs: readonly number[]
  /** How long after a fault a slot is still none of the quiet time's. */
  readonly windowMs: number
}

export interface Lateness {
  readonly slots: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

export interface SlotVerdict {
  readonly lost: readonly string[]
  readonly doubled: readonly string[]
  /** Too early, off the cadence, or of no schedule. */
  readonly wrong: readonly string[]
  /** Of the slots that neither the start nor a fault has touched. */
  readonly quiet: Lateness
  readonly overall: Lateness
}

export function judgeSlots(evidence: SlotEvidence): SlotVerdict {
  const { jobs, told, everyMs } = evidence
  const stored = countSlots(jobs)
  const answered = countSlots(told)
  const isQuiet = quietTime(evidence)
  return {
    lost: [
      ...missingSlots(evidence, stored),
      ...[...answered.keys()]
        .filter((key) => !stored.has(key))
        .map((key) => `${key} was fired, and has no job`),
    ],
    doubled: [
      ...repeated(stored).map(([key, times]) => `${key} has ${times} jobs`),
      ...repeated(answered).map(([key, times]) => `${key} was answered as fired ${times} times`),
    ],
    wrong: jobs
      .filter(
        ({ schedule, slot, firedAtMs }) =>
          slot % everyMs !== 0 || firedAtMs < slot || !evidence.schedules.includes(schedule),
      )
      .map((job) => `${keyOf(job)} was fired at ${job.firedAtMs}`),
    quiet: latenessOf(jobs.filter(isQuiet)),
    overall: latenessOf(jobs),
  }
}

function keyOf({ schedule, slot }: Slot): string {
  return `slot ${slot} of ${schedule}`
}

function countSlots(slots: readonly Slot[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const slot of slots) counts.set(keyOf(slot), (counts.get(keyOf(slot)) ?? 0) + 1)
  return counts
}

function repeated(counts: ReadonlyMap<string, number>): [string, number][] {
  return [...counts].filter(([, times]) => times > 1)
}

function missingSlots(
  { schedules, everyMs, fromMs, toMs, jobs }: SlotEvidence,
  stored: ReadonlyMap<string, number>,
): string[] {
  const missing: string[] = []
  for (const schedule of schedules) {
    const slots = jobs.filter((job) => job.schedule === schedule).map(({ slot }) => slot)
    const firstMs = Math.min(Math.ceil(fromMs / everyMs) * everyMs, ...slots)
    const lastMs = Math.max(toMs, ...slots)
    for (let slot = firstMs; slot <= lastMs; slot += everyMs) {
      const key = keyOf({ schedule, slot })
      if (!stored.has(key)) missing.push(`${key} has no job`)
    }
  }
  return missing
}

/**
 * By when a slot was due, never by when it came: one that is late for no reason must not hide in the window of a fault. A
 * slot that was due within an interval before the fault may have been waiting for its turn.
 */
function quietTime({ fromMs, faultsAtMs, windowMs, everyMs }: SlotEvidence): (slot: Slot) => boolean {
  return ({ slot }) =>
    slot >= fromMs && !faultsAtMs.some((atMs) => slot > atMs - everyMs && slot <= atMs + windowMs)
}

function latenessOf(jobs: readonly FiredSlot[]): Lateness {
  const sorted = jobs.map(({ slot, firedAtMs }) => firedAtMs - slot).sort((a, b) => a - b)
  const at = (share: number): number => sorted[Math.ceil(sorted.length * share) - 1] ?? NaN
  return { slots: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) }
}
