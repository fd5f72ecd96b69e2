/**
 * When a schedule fires: its ticks, as instants in ms. Every process computes the same ticks. An interval counts from 1970 in
 * UTC. A cron pattern is matched against local time; a policy says what to do when local time jumps.
 */
import { Cron } from 'croner'
import { Zone } from './zone.ts'

/**
 * When clocks go forward, some local times don't exist; when they go back, some exist twice. `once`: a tick in the gap fires
 * at the first instant after it, and a repeated tick fires the first time only. `skip`: a tick in the gap does not fire.
 * `both`: a repeated tick fires both times.
 */
export type DstPolicy = 'once' | 'skip' | 'both'

export type Timing =
  | { readonly every: number }
  | { readonly cron: string; readonly tz: string; readonly dst: DstPolicy }

/** The first tick after an instant; null if there is none. */
export type NextTick = (afterMs: number) => number | null

/** For a validated timing; see `readTiming`. */
export function ticksOf(timing: Timing): NextTick {
  if ('every' in timing) return (afterMs) => (Math.floor(afterMs / timing.every) + 1) * timing.every
  const zone = Zone.find(timing.tz)
  if (zone === null) throw new RangeError(`There is no time zone ${timing.tz} here.`)
  const pattern = cronPattern(timing.cron)
  return (afterMs) => nextMatch(pattern, zone, timing.dst, afterMs)
}

/** Throws if the pattern is invalid. Local times are represented as if they were UTC. */
function cronPattern(cron: string): NextTick {
  const pattern = new Cron(cron, { utcOffset: 0, paused: true })
  return (afterMs) => pattern.nextRun(new Date(afterMs))?.getTime() ?? null
}

/** About half a year each: no pattern that ever matches takes longer. */
const MOST_STRETCHES = 200

function nextMatch(pattern: NextTick, zone: Zone, dst: DstPolicy, afterMs: number): number | null {
  let stretch = zone.stretchAt(afterMs)
  let localMs = afterMs + stretch.offsetMs
  for (let step = 0; step < MOST_STRETCHES; step++) {
    // Local times up to here have occurred before.
    if (dst !== 'both' && stretch.beforeMs > stretch.offsetMs)
      localMs = Math.max(localMs, stretch.startMs + stretch.beforeMs - 1)
    const match = pattern(localMs)
    if (match === null) return null
    const { endMs } = stretch
    if (match < endMs + stretch.offsetMs) return match - stretch.offsetMs
    stretch = zone.stretchAt(endMs)
    const endsLocalMs = endMs + stretch.offsetMs
    if (dst !== 'skip' && match < endsLocalMs) return endMs
    localMs = endsLocalMs - 1
  }
  return null
}
