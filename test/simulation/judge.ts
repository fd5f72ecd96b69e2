/** Runs a seed and has its history judged. */
import { check, Checker, type Verdict } from '../checker/check.ts'
import { explain } from '../checker/explain.ts'
import type { HistoryEvent } from '../checker/history.ts'
import type { CheckOptions } from '../checker/options.ts'
import type { RunPlan } from './plan.ts'
import { simulate } from './run.ts'

const FIVE_MINUTES_MS = 300_000

export interface Judged {
  readonly seed: number
  readonly minutes: number
  readonly plan: RunPlan
  readonly simulatedMs: number
  readonly events: number
  readonly recorded: number
  readonly verdict: Verdict
}

/** Judges while it runs. Only a run that broke something is worth keeping: it is run again for its evidence. */
export async function judge(seed: number, minutes: number): Promise<Judged> {
  const judging: { checker?: Checker } = {}
  const summary = await simulate({
    seed,
    minutes,
    sink: (event, plan) => (judging.checker ??= new Checker(boundsOf(plan))).take(event),
  })
  const verdict = judging.checker?.end()
  if (verdict === undefined) throw new Error('a run without a single event')
  const told = verdict.violationCount === 0 ? verdict : await evidence(seed, minutes)
  return { seed, minutes, ...summary, verdict: told }
}

async function evidence(seed: number, minutes: number): Promise<Verdict> {
  const history: HistoryEvent[] = []
  const { plan } = await simulate({ seed, minutes, sink: (event) => history.push(event) })
  return check(history, boundsOf(plan))
}

function boundsOf(plan: RunPlan): CheckOptions {
  return {
    leaseMs: plan.leaseMs,
    // A process that takes over the upkeep waits for the old leader's term to end, and watches the store for one lease.
    failoverMs: plan.leaseMs + Math.min(10_000, plan.leaseMs / 2) + 2_000,
    // What piled up during the faults has to be worked off first: the more, the longer they lasted, and a small fleet
    // takes longer.
    starveMs:
      (60_000 + 240_000 / (plan.workers * plan.concurrency)) * Math.max(1, plan.durationMs / FIVE_MINUTES_MS),
  }
}

/** What a person needs to find out why: the seed, how much of the run is enough to see it, and the job's own events. */
export function explainFailure({ seed, minutes, recorded, verdict }: Judged): string {
  const [first] = verdict.violations
  if (first === undefined) return `seed ${seed}: no violation`
  const prefix = first.seq + 1
  return [
    `seed ${seed} broke ${verdict.violationCount} rules; the first shows within ${prefix} of ${recorded} events.`,
    explain(first),
    `Run it again: npm run simulate -- --seed ${seed} --minutes ${minutes}`,
  ].join('\n')
}
