/**
 * Fires schedules. Which slots there are is arithmetic that every process does alike, from the store's time; that each
 * fires once is the store's doing: it takes a slot only if it is later than the last, and writes the job in the same
 * step. So it does no harm where two lead for a moment, or where the clock of a process is wrong.
 */
import type { Core } from '../core/core.ts'
import { storeTime, type StoreTime } from '../core/store-time.ts'
import { dueSlots } from '../scheduler/due.ts'
import { firstOpen } from '../scheduler/first-open.ts'
import { readStored, slotJobId, writeSpec, type ScheduleFacts } from '../scheduler/stored.ts'
import { slotsOf, type NextSlot, type Timing } from '../scheduler/timing.ts'
import type { Schedules } from '../stores/store.ts'
import { AT_ONCE_MS, type Duty } from './duty.ts'
import { StoreClock, type Sight } from './store-clock.ts'

/** A schedule that is made or changed elsewhere is seen within this time; the first of all within the other. */
const LONGEST_NAP_MS = 1_000
const NAP_WITHOUT_ANY_MS = 5_000
/** A slot that fires later than this is told of. */
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

/** Fires what is due; resolves to when the next slot is, or null where there is no schedule at all. */
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

/** Resolves to how long it may be left alone. */
async function fireDue(core: Core, schedule: ScheduleFacts, time: StoreTime): Promise<number> {
  const next = slotsAfter(schedule.timing)
  const nowMs = time()
  const { slot: from, isAstray } = firstOpen(schedule, next, nowMs)
  if (from === null) return Infinity
  if (!isAstray && from > nowMs) return from - nowMs
  if (schedule.overlap === 'queue' && (await isBusy(core, schedule))) return LONGEST_NAP_MS
  if (isAstray) {
    // Ticks that were fired come again: their jobs need other ids.
    await moveOn(core, { ...schedule, seed: core.ids.job() }, from)
    return from - time()
  }
  const due = dueSlots(schedule, next, from, nowMs)
  if (due.skipped > 0)
    core.events.emit('schedule.skipped', {
      schedule: schedule.id,
      job: schedule.job.name,
      slots: due.skipped,
    })
  // Past slots that nobody wants any more.
  if (due.fire.length === 0) await moveOn(core, schedule, due.next)
  for (const { slot, next: following } of due.fire) {
    // Somebody else is at it, or it is gone: what was read is out of date. A leader that thaws would else ask for every slot
    // of the time that it was frozen, and get in the way of the one that fires them.
    if ((await fire(core, schedule, { slot, next: following, time })) !== 'fired') return AT_ONCE_MS
    // The others wait for the end of its job.
    if (schedule.overlap === 'queue') break
  }
  return due.next === null ? Infinity : due.next - time()
}

async function fire(
  core: Core,
  schedule: ScheduleFacts,
  { slot, next, time }: { readonly slot: number; readonly next: number | null; readonly time: StoreTime },
): Promise<Awaited<ReturnType<Schedules['fire']>>> {
  const { id, jitterMs } = schedule
  const due = { inMs: jitterMs === 0 ? 0 : Math.floor(core.random.float() * jitterMs) }
  const job = { ...schedule.job, id: slotJobId(schedule, slot), due }
  const fired = await core.store.upkeep.fire(id, slot, next, job)
  if (fired !== 'fired') return fired
  const lateMs = Math.max(0, time() - slot)
  const event = { schedule: id, job: job.name, jobId: job.id, slot: new Date(slot), lateMs }
  core.events.emit('schedule.fired', event)
  if (lateMs > LATE_MS) core.events.emit('schedule.late', event)
  return fired
}

/** Whether the job of the last slot is unfinished. */
async function isBusy(core: Core, schedule: ScheduleFacts): Promise<boolean> {
  const { lastSlot } = schedule
  if (lastSlot === null) return false
  const record = await core.store.upkeep.job(slotJobId(schedule, lastSlot))
  return record !== null && !['completed', 'dead', 'cancelled'].includes(record.state)
}

function moveOn(core: Core, schedule: ScheduleFacts, nextSlot: number | null): Promise<void> {
  return core.store.upkeep.moveSchedule({ id: schedule.id, spec: writeSpec(schedule), nextSlot })
}

const compiled = new Map<string, NextSlot>()
const MOST_COMPILED = 1_000

/** Reading a pattern and its zone takes far longer than asking for a slot. */
function slotsAfter(timing: Timing): NextSlot {
  const key = JSON.stringify(timing)
  const known = compiled.get(key) ?? remembering(slotsOf(timing))
  if (compiled.size >= MOST_COMPILED) compiled.clear()
  compiled.set(key, known)
  return known
}

/** Most looks find the slot that the look before found. */
function remembering(next: NextSlot): NextSlot {
  let from = Infinity
  let found: number | null = null
  return (afterMs) => {
    if (found !== null && from <= afterMs && afterMs < found) return found
    from = afterMs
    found = next(afterMs)
    return found
  }
}
