/** What a run went through: figures for reports, judged by nobody. */
import type { HistoryEvent, InvokeEvent } from './history.ts'

export interface Counted {
  events: number
  calls: number
  /** Calls that nobody knows the end of, and calls that were refused. */
  unknown: number
  failed: number
  born: number
  claims: number
  runs: number
  rescued: number
  settlesWritten: number
  /** Repeats that found their work done. */
  settlesAlready: number
  /** Settles of a lease that was lost: what the fence is for. */
  staleSettlesRefused: number
  /** By kind. */
  readonly faults: Record<string, number>
}

export function noTally(): Counted {
  return {
    events: 0,
    calls: 0,
    unknown: 0,
    failed: 0,
    born: 0,
    claims: 0,
    runs: 0,
    rescued: 0,
    settlesWritten: 0,
    settlesAlready: 0,
    staleSettlesRefused: 0,
    faults: {},
  }
}

export function tally(counted: Counted, event: HistoryEvent, invoked: InvokeEvent | undefined): void {
  counted.events++
  switch (event.type) {
    case 'invoke':
      counted.calls++
      return
    case 'unknown':
      counted.unknown++
      return
    case 'failed':
      counted.failed++
      return
    case 'move':
      if (event.from === null) counted.born++
      else if (event.by === 'claim') counted.claims++
      else if (event.by === 'rescue') counted.rescued++
      return
    case 'run':
      if (event.what === 'start') counted.runs++
      return
    case 'fault':
      counted.faults[event.kind] = (counted.faults[event.kind] ?? 0) + 1
      return
    case 'answer':
      if (event.reply.kind !== 'cycle' || invoked === undefined) return
      for (const answer of event.reply.settled) {
        if (answer === 'written') counted.settlesWritten++
        else if (answer === 'already') counted.settlesAlready++
        else counted.staleSettlesRefused++
      }
      return
    default:
  }
}
