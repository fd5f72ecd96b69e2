/**
 * Fires schedules. Every process computes the same ticks from the store's time. The store makes sure that each fires
 * once: it accepts a tick only if it is later than the last one, and writes the job in the same step. So two leaders at
 * once, or a process with a wrong clock, do no harm.
 */
import type { Core } from '../core/core.ts'
import { storeTime, type StoreTime } from '../core/store-time.ts'
import { dueTicks } from '../scheduler/due.ts'
import { firstOpen } from '../scheduler/first-open.ts'
import { readStored, tickJobId, writeSpec, type ScheduleFacts } from '../scheduler/stored.ts'
import { ticksOf, type NextTick, type Timing } from '../scheduler/timing.ts'
import type { Schedules } from '../stores/store.ts'
import { AT_ONCE_MS, type Duty } from './duty.ts'
import { StoreClock, type Sight } from './store-clock.ts'

/** How long until a new or changed schedule is noticed: if there are schedules already, and if there are none. */
const LONGEST_NAP_MS = 1_000
const NAP_WITHOUT_ANY_MS = 5_000
/** A tick that fires later than this emits `schedule.late`. */
const LATE_MS = 2_000
const MOST_AT_ONCE = 20

export function scheduler(core: Core): Duty {
  const storeClock = new StoreClock(core)
  return {
    name: 'fire schedules',
    async run() {
      const { active, sight, time } = await readSchedules(core)
      await storeClock.see(sight, active.length)
      const nextInMs = await fireAll(core, active, time)
      if (nextInMs === null) return { againInMs: NAP_WITHOUT_ANY_MS }
      return { againInMs: Math.max(AT_ONCE_MS, Math.min(LONGEST_NAP_MS, nextInMs)) }
    },
  }
}

/** Fires what is due. Resolves to the time until the next tick, or null if there are no schedules. */
export async function fireSchedules(core: Core): Promise<number | null> {
  const { active, time } = await readSchedules(core)
  return fireAll(core, active, time)
}

interface ReadSchedules {
  readonly active: readonly ScheduleFacts[]
  readonly sight: Sight
  readonly time: StoreTime
}

async function readSchedules({ store, clock }: Core): Promise<ReadSchedules> {
  const sentMs = clock.monotonicMs()
  const { now, schedules } = await store.upkeep.schedules()
  return {
    active: schedules.flatMap((one) => readStored(one) ?? []).filter(({ paused }) => !paused),
    sight: { now, sentMs, answeredMs: clock.monotonicMs() },
    time: storeTime(now, clock),
  }
}

async function fireAll(
  core: Core,
  active: readonly ScheduleFacts[],
  time: StoreTime,
): Promise<number | null> {
  const waits: number[] = []
  for (let at = 0; at < active.length; at += MOST_AT_ONCE) {
    const some = active.slice(at, at + MOST_AT_ONCE)
    waits.push(...(await Promise.all(some.map((schedule) => fireDue(core, schedule, time)))))
  }
  return waits.length === 0 ? null : Math.min(...waits)
}

/** Resolves to the time until this schedule needs attention again. */
async function fireDue(core: Core, schedule: ScheduleFacts, time: StoreTime): Promise<number> {
  const next = ticksAfter(schedule.timing)
  const nowMs = time()
  const { tick: from, isAstray } = firstOpen(schedule, next, nowMs)
  if (from === null) return Infinity
  if (!isAstray && from > nowMs) return from - nowMs
  if (schedule.overlap === 'queue' && (await isBusy(core, schedule))) return LONGEST_NAP_MS
  if (isAstray) {
    // Ticks that have fired will fire again, so their jobs need new ids.
    await moveOn(core, { ...schedule, seed: core.ids.job() }, from)
    return from - time()
  }
  const due = dueTicks(schedule, next, from, nowMs)
  if (due.skipped > 0)
    core.events.emit('schedule.skipped', {
      schedule: schedule.id,
      job: schedule.job.name,
      ticks: due.skipped,
    })
  // Past ticks that `catchUp` does not ask for.
  if (due.fire.length === 0) await moveOn(core, schedule, due.next)
  for (const { tick, next: following } of due.fire) {
    // Another leader fires it, or it is gone: our copy is out of date. Without this, a leader that was frozen would try
    // every tick it missed, and get in the way of the current leader.
    if ((await fire(core, schedule, { tick, next: following, time })) !== 'fired') return AT_ONCE_MS
    // The other ticks wait until its job has ended.
    if (schedule.overlap === 'queue') break
  }
  return due.next === null ? Infinity : due.next - time()
}

async function fire(
  core: Core,
  schedule: ScheduleFacts,
  { tick, next, time }: { readonly tick: number; readonly next: number | null; readonly time: StoreTime },
): Promise<Awaited<ReturnType<Schedules['fire']>>> {
  const { id, jitterMs } = schedule
  const due = { inMs: jitterMs === 0 ? 0 : Math.floor(core.random.float() * jitterMs) }
  const { store, instrumentation } = core
  const envelope = instrumentation.stamp(schedule.job.envelope, 'job', schedule.job.name)
  const job = { ...schedule.job, id: tickJobId(schedule, tick), due, envelope }
  const fired = await instrumentation.aroundFire(job, () => store.upkeep.fire(id, tick, next, job))
  if (fired !== 'fired') return fired
  const lateMs = Math.max(0, time() - tick)
  const event = { schedule: id, job: job.name, jobId: job.id, tick: new Date(tick), lateMs }
  core.events.emit('schedule.fired', event)
  if (lateMs > LATE_MS) core.events.emit('schedule.late', event)
  return fired
}

/** Whether the job of the last tick is unfinished. */
async function isBusy(core: Core, schedule: ScheduleFacts): Promise<boolean> {
  const { lastTick } = schedule
  if (lastTick === null) return false
  const record = await core.store.upkeep.job(tickJobId(schedule, lastTick))
  return record !== null && !['completed', 'dead', 'cancelled'].includes(record.state)
}

function moveOn(core: Core, schedule: ScheduleFacts, nextTick: number | null): Promise<void> {
  return core.store.upkeep.moveSchedule(schedule.id, { spec: writeSpec(schedule), nextTick })
}

const compiled = new Map<string, NextTick>()
const MOST_COMPILED = 1_000

/** Cached, because parsing a pattern and its zone takes far longer than computing a tick. */
function ticksAfter(timing: Timing): NextTick {
  const key = JSON.stringify(timing)
  const known = compiled.get(key) ?? remembering(ticksOf(timing))
  if (compiled.size >= MOST_COMPILED) compiled.clear()
  compiled.set(key, known)
  return known
}

/** Most calls find the same tick as the previous call. */
function remembering(next: NextTick): NextTick {
  let from = Infinity
  let found: number | null = null
  return (afterMs) => {
    if (found !== null && from <= afterMs && afterMs < found) return found
    from = afterMs
    found = next(afterMs)
    return found
  }
}
