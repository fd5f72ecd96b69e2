/** What makes a worker unhealthy, as a pure function: a sentence for each problem. */
import { formatDuration } from '../std/duration.ts'
import type { WorkerHealth } from '../worker/health.ts'
import type { ResolvedThresholds } from '../worker/health-thresholds.ts'
import type { Waiting } from './backlog.ts'
import { ENOUGH_ATTEMPTS, type Counts } from './history.ts'

export interface WorkerFacts {
  readonly health: WorkerHealth
  /** Since it last finished something, or since it started. */
  readonly idleMs: number
  /** What it did lately. */
  readonly recent: Counts
  /** Null where the store could not say. */
  readonly waiting: Waiting | null
}

export function problemsOf(facts: WorkerFacts, thresholds: ResolvedThresholds): string[] {
  return [
    cutOff(facts),
    inactive(facts, thresholds),
    failing(facts, thresholds),
    overrun(facts, thresholds),
  ].filter((problem) => problem !== null)
}

function cutOff({ health }: WorkerFacts): string | null {
  // One that is told to stop claims nothing, as it should.
  if (health.healthy || health.stopping) return null
  return `The store has not answered it for ${formatDuration(health.lastPollMsAgo)}.`
}

/** Only where a job has waited for as long: it is no fault of a worker that there was nothing to do. */
function inactive({ health, idleMs, waiting }: WorkerFacts, thresholds: ResolvedThresholds): string | null {
  const oldestMs = waiting?.oldestMs ?? 0
  if (Math.min(idleMs, oldestMs) < thresholds.idleMs) return null
  const waits = `a job has been waiting for ${formatDuration(oldestMs)}`
  return `It has finished nothing for ${formatDuration(idleMs)}, while ${waits}; ${health.busy} of ${health.slots} slots are busy.`
}

function failing(
  { recent: { processed, failed } }: WorkerFacts,
  thresholds: ResolvedThresholds,
): string | null {
  if (processed < ENOUGH_ATTEMPTS || failed <= processed * thresholds.errorRate) return null
  const share = `${percent(failed / processed)}, more than ${percent(thresholds.errorRate)}`
  return `${number(failed)} of its last ${number(processed)} attempts failed: ${share}.`
}

function overrun({ waiting }: WorkerFacts, thresholds: ResolvedThresholds): string | null {
  if (waiting === null || waiting.size <= thresholds.queueSize) return null
  const wait = waiting.size === 1 ? '1 job waits' : `${number(waiting.size)} jobs wait`
  return `${wait} in ${waiting.queues.join(', ')}, more than ${number(thresholds.queueSize)}.`
}

function percent(share: number): string {
  return `${number(Math.round(share * 1_000) / 10)} %`
}

function number(value: number): string {
  return value.toLocaleString('en-US')
}
