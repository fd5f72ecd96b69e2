/**
 * Judges what a soak of schedules has left behind. Every tick of each schedule has to be there once, from the first to the
 * last: the jobs in the store are the evidence, and what the store answered to those who fired them.
 */

export interface Tick {
  readonly schedule: string
  readonly tick: number
}

export interface FiredTick extends Tick {
  /** When its job was written, by the store's clock. */
  readonly firedAtMs: number
}

export interface TickEvidence {
  readonly schedules: readonly string[]
  readonly everyMs: number
  /** Since when all are at work, and until when: ticks between must be there whatever came first and last. */
  readonly fromMs: number
  readonly toMs: number
  /** Of every job in the store. */
  readonly jobs: readonly FiredTick[]
  /** Each time that somebody was answered that it had fired a tick. Who is killed tells no more, so some are missing. */
  readonly told: readonly Tick[]
  readonly faultsAtMs: readonly number[]
  /** How long after a fault a tick is still none of the quiet time's. */
  readonly windowMs: number
}

export interface Lateness {
  readonly ticks: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

export interface TickVerdict {
  readonly lost: readonly string[]
  readonly doubled: readonly string[]
  /** Too early, off the cadence, or of no schedule. */
  readonly wrong: readonly string[]
  /** Of the ticks that neither the start nor a fault has touched. */
  readonly quiet: Lateness
  readonly overall: Lateness
}

export function judgeTicks(evidence: TickEvidence): TickVerdict {
  const { jobs, told, everyMs } = evidence
  const stored = countTicks(jobs)
  const answered = countTicks(told)
  const isQuiet = quietTime(evidence)
  return {
    lost: [
      ...missingTicks(evidence, stored),
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
        ({ schedule, tick, firedAtMs }) =>
          tick % everyMs !== 0 || firedAtMs < tick || !evidence.schedules.includes(schedule),
      )
      .map((job) => `${keyOf(job)} was fired at ${job.firedAtMs}`),
    quiet: latenessOf(jobs.filter(isQuiet)),
    overall: latenessOf(jobs),
  }
}

function keyOf({ schedule, tick }: Tick): string {
  return `tick ${tick} of ${schedule}`
}

function countTicks(ticks: readonly Tick[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const tick of ticks) counts.set(keyOf(tick), (counts.get(keyOf(tick)) ?? 0) + 1)
  return counts
}

function repeated(counts: ReadonlyMap<string, number>): [string, number][] {
  return [...counts].filter(([, times]) => times > 1)
}

function missingTicks(
  { schedules, everyMs, fromMs, toMs, jobs }: TickEvidence,
  stored: ReadonlyMap<string, number>,
): string[] {
  const missing: string[] = []
  for (const schedule of schedules) {
    const ticks = jobs.filter((job) => job.schedule === schedule).map(({ tick }) => tick)
    const firstMs = Math.min(Math.ceil(fromMs / everyMs) * everyMs, ...ticks)
    const lastMs = Math.max(toMs, ...ticks)
    for (let tick = firstMs; tick <= lastMs; tick += everyMs) {
      const key = keyOf({ schedule, tick })
      if (!stored.has(key)) missing.push(`${key} has no job`)
    }
  }
  return missing
}

/**
 * By when a tick was due, never by when it came: one that is late for no reason must not hide in the window of a fault. A
 * tick that was due within an interval before the fault may have been waiting for its turn.
 */
function quietTime({ fromMs, faultsAtMs, windowMs, everyMs }: TickEvidence): (tick: Tick) => boolean {
  return ({ tick }) =>
    tick >= fromMs && !faultsAtMs.some((atMs) => tick > atMs - everyMs && tick <= atMs + windowMs)
}

function latenessOf(jobs: readonly FiredTick[]): Lateness {
  const sorted = jobs.map(({ tick, firedAtMs }) => firedAtMs - tick).sort((a, b) => a - b)
  const at = (share: number): number => sorted[Math.ceil(sorted.length * share) - 1] ?? NaN
  return { ticks: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) }
}
