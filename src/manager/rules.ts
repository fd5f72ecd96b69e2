/** Rules for worker health, as a pure function that returns a sentence for each problem. */
import { formatDuration } from '../std/duration.ts'
import type { WorkerHealth } from '../worker/health.ts'
import type { ResolvedThresholds } from '../worker/health-thresholds.ts'
import type { Waiting } from './backlog.ts'
import { ENOUGH_ATTEMPTS, type Counts } from './history.ts'

export interface WorkerFacts {
  readonly health: WorkerHealth
  /** Time since the worker last finished a job, or since it started. */
  readonly idleMs: number
  /** Its recent attempts. */
  readonly recent: Counts
  /** Null if the store did not answer. */
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
  // A stopping worker rightly claims nothing.
  if (health.healthy || health.stopping) return null
  return `The store has not answered it for ${formatDuration(health.lastPollMsAgo)}.`
}

/** Only if a job has waited for as long: a worker without jobs is not inactive. */
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
