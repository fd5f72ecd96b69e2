/** Runs a seed and has its history judged. */
import { check, type Verdict } from '../checker/check.ts'
import { explain } from '../checker/explain.ts'
import type { HistoryEvent } from '../checker/history.ts'
import type { RunPlan } from './plan.ts'
import { simulate } from './run.ts'

export interface Judged {
  readonly seed: number
  readonly plan: RunPlan
  readonly simulatedMs: number
  readonly history: readonly HistoryEvent[]
  readonly verdict: Verdict
}

export async function judge(seed: number, minutes: number): Promise<Judged> {
  const history: HistoryEvent[] = []
  const { plan, simulatedMs } = await simulate({ seed, minutes, sink: (event) => history.push(event) })
  const verdict = check(history, {
    leaseMs: plan.leaseMs,
    // A process that takes over the upkeep waits for the old leader's term to end, and watches the store for one lease.
    failoverMs: plan.leaseMs + Math.min(10_000, plan.leaseMs / 2) + 2_000,
    // What piled up during the faults has to be worked off first, which takes a small fleet longer.
    starveMs: 60_000 + 240_000 / (plan.workers * plan.concurrency),
  })
  return { seed, plan, simulatedMs, history, verdict }
}

/** What a person needs to find out why: the seed, how much of the run is enough to see it, and the job's own events. */
export function explainFailure({ seed, history, verdict }: Judged, minutes: number): string {
  const [first] = verdict.violations
  if (first === undefined) return `seed ${seed}: no violation`
  const prefix = first.seq + 1
  return [
    `seed ${seed} broke ${verdict.violationCount} rules; the first shows within ${prefix} of ${history.length} events.`,
    explain(first),
    `Run it again: npm run simulate -- --seed ${seed} --minutes ${minutes}`,
  ].join('\n')
}
