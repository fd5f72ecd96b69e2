/** Clocks that are wrong: those of processes, which do not matter, and the store's, which everything is due by. */
import { describe, expect, test } from 'vitest'
import { VirtualWorld, type Process } from '../../test/support/virtual.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

function ticksOf(...processes: readonly Process<'default'>[]): number[] {
  return processes.flatMap(({ told }) => told.of('schedule.fired').map(({ tick }) => tick.getTime()))
}

/** Every second from the first to the last, once. */
function expectEverySecond(ticks: readonly number[]): void {
  const first = Math.min(...ticks)
  expect(ticks.toSorted((a, b) => a - b)).toEqual(ticks.map((_, index) => first + index * SECOND_MS))
}

/** Its schedule is stored before it starts to work, so that no tick is missed. */
async function worker(world: VirtualWorld, { offMs = 0, everySecond = false } = {}) {
  const process = world.process()
  process.setClockOff(offMs)
  const ran: string[] = []
  const job = process.hf.job({ name: 'tick', run: ({ job: { id } }) => void ran.push(id) })
  if (everySecond) await job.schedule('tick', { every: '1s', catchUp: 'all' })
  const running = await process.hf.work({ lease: '6s' })
  return { ...process, job, ran, stop: () => world.run(running.stop()) }
}

describe('a process whose clock is wrong', () => {
  test.each([
    ['an hour ahead', HOUR_MS],
    ['an hour behind', -HOUR_MS],
  ])('%s for four seconds fires every tick, and leaves none out afterwards', async (_how, offMs) => {
    const world = new VirtualWorld()
    const wrong = await worker(world, { offMs, everySecond: true })
    await world.advance(4 * SECOND_MS)
    await wrong.stop()
    const right = await worker(world)
    await world.advance(20 * SECOND_MS)
    const ticks = ticksOf(wrong, right)
    expectEverySecond(ticks)
    expect(ticks.length).toBeGreaterThanOrEqual(23)
    expect(Math.max(...ticks)).toBe(Math.floor(world.clock.now() / SECOND_MS) * SECOND_MS)
    expect(wrong.ran.length + right.ran.length).toBe(ticks.length)
    for (const { told } of [wrong, right]) expect(told.of('schedule.late')).toEqual([])
  })

  test('sees schedules as all others do', async () => {
    const world = new VirtualWorld()
    const [wrong, right] = [world.process(), world.process()]
    wrong.setClockOff(HOUR_MS)
    const job = wrong.hf.job({ name: 'tick', run: () => undefined })
    await job.schedule('tick', { every: '1m' })
    const comes = new Date((Math.floor(world.clock.now() / MINUTE_MS) + 1) * MINUTE_MS)
    const seen = [await wrong.hf.schedules.get('tick'), await right.hf.schedules.get('tick')]
    for (const schedule of seen) {
      expect(schedule).toMatchObject({ nextTick: comes, lateMs: 0 })
      expect(schedule?.next(1)).toEqual([comes])
    }
    await world.advance(MINUTE_MS)
    // They stay right while they are held.
    for (const schedule of seen) expect(schedule?.next(1)).toEqual([new Date(comes.getTime() + MINUTE_MS)])
  })

  test('cannot keep a schedule silent by what it stored', async () => {
    const world = new VirtualWorld()
    const process = await worker(world, { everySecond: true })
    const { schedules } = await world.store.schedules.list()
    const nextTick = world.clock.now() + HOUR_MS
    await world.store.schedules.put(schedules[0]!.id, { ...schedules[0]!, nextTick })
    await world.advance(10 * SECOND_MS)
    expect(ticksOf(process).length).toBeGreaterThanOrEqual(8)
    expectEverySecond(ticksOf(process))
  })
})

describe("the store's clock, put back", () => {
  test('is told by the leader, once, with what is due later', async () => {
    const world = new VirtualWorld()
    const fleet = [await worker(world), await worker(world)]
    const { job } = fleet[0]!
    await job.schedule('tick', { every: '1m' })
    await job.schedule('paused', { every: '1m' })
    await (await fleet[0]!.hf.schedules.get('paused'))!.pause()
    await job.enqueueMany([undefined, undefined], { in: '2h' })
    await world.advance(10 * SECOND_MS)
    world.storeOffMs = -HOUR_MS
    await world.advance(MINUTE_MS)
    const told = fleet.flatMap((process) => process.told.of('store.clock'))
    expect(told).toEqual([{ backMs: expect.any(Number), scheduled: 2, schedules: 1 }])
    expect(told[0]!.backMs).toBeGreaterThan(HOUR_MS - 2 * SECOND_MS)
    expect(told[0]!.backMs).toBeLessThanOrEqual(HOUR_MS)
  })

  test('is told although the count fails at first', async () => {
    const world = new VirtualWorld()
    const { line, told } = await worker(world)
    await world.advance(10 * SECOND_MS)
    world.storeOffMs = -HOUR_MS
    line.fail('admin.queues', () => Promise.reject(new Error('busy')), 2)
    await world.advance(30 * SECOND_MS)
    expect(told.of('store.clock')).toHaveLength(1)
  })

  test('is told by a leader that has just started, once in the fleet', async () => {
    const world = new VirtualWorld()
    const before = await worker(world)
    await world.advance(30 * SECOND_MS)
    before.kill()
    world.storeOffMs = -HOUR_MS
    const after = [await worker(world), await worker(world)]
    // The term of the one before ends by the store's clock.
    await world.store.upkeep.lead(before.told.of('leader.elected')[0]!.candidate as never, 0)
    await world.advance(MINUTE_MS)
    await world.run(after[0]!.hf.close())
    await world.advance(MINUTE_MS)
    const told = after.flatMap((process) => process.told.of('store.clock'))
    expect(told).toHaveLength(1)
    expect(told[0]!.backMs).toBeGreaterThan(HOUR_MS - 15 * SECOND_MS)
    expect(told[0]!.backMs).toBeLessThanOrEqual(HOUR_MS)
  })

  test('is not told again by a former leader that leads once more', async () => {
    const world = new VirtualWorld()
    const first = await worker(world)
    await world.advance(20 * SECOND_MS)
    first.freeze()
    const second = await worker(world)
    await world.advance(30 * SECOND_MS)
    world.storeOffMs = -HOUR_MS
    await world.advance(30 * SECOND_MS)
    expect(second.told.of('store.clock')).toHaveLength(1)
    first.thaw()
    await world.run(second.hf.close())
    await world.advance(MINUTE_MS)
    expect(first.told.of('leader.elected').length).toBeGreaterThan(1)
    expect(first.told.of('store.clock')).toEqual([])
  })

  test('does not silence schedules, then or when its old time comes again', async () => {
    const world = new VirtualWorld()
    const process = await worker(world, { everySecond: true })
    await world.advance(10 * SECOND_MS)
    const before = ticksOf(process)
    expectEverySecond(before)
    world.storeOffMs = -MINUTE_MS
    await world.advance(2 * MINUTE_MS)
    const after = ticksOf(process).slice(before.length)
    expectEverySecond(after)
    expect(after.length).toBeGreaterThanOrEqual(118)
    expect(after[0]).toBeLessThan(before[0]!)
    expect(after.at(-1)).toBeGreaterThan(before.at(-1)!)
    expect(new Set(process.ran).size, 'every tick has a job of its own').toBe(before.length + after.length)
    expect(process.told.of('duty.failed')).toEqual([])
  })

  test('does not fire the last tick again, nor wait for the end of time to fire the next', async () => {
    const world = new VirtualWorld()
    const process = await worker(world)
    await process.job.schedule('hourly', { cron: '0 * * * *' })
    await world.advance(HOUR_MS + MINUTE_MS)
    expect(ticksOf(process)).toHaveLength(1)
    world.storeOffMs = -5 * MINUTE_MS
    await world.advance(30 * MINUTE_MS)
    expect(ticksOf(process)).toHaveLength(1)
    await world.advance(HOUR_MS)
    expect(ticksOf(process)).toHaveLength(2)
  })

  test('does not let a job overlap with the one before, where that is to be waited for', async () => {
    const world = new VirtualWorld()
    const process = world.process()
    let running = 0
    let most = 0
    const job = process.hf.job({
      name: 'tick',
      async run() {
        most = Math.max(most, ++running)
        await new Promise<void>((resolve) => void process.clock.after(5 * SECOND_MS, resolve))
        running--
      },
    })
    await process.hf.work()
    await job.schedule('tick', { every: '1s', overlap: 'queue' })
    await world.advance(12 * SECOND_MS)
    world.storeOffMs = -HOUR_MS
    await world.advance(MINUTE_MS)
    expect(most).toBe(1)
    expect(ticksOf(process).length).toBeGreaterThanOrEqual(8)
  })

  test.each([
    ['by a second', 1],
    ['by two, which nobody notices', 2],
  ])('%s is no news', async (_how, seconds) => {
    const world = new VirtualWorld()
    const { told } = await worker(world)
    await world.advance(10 * SECOND_MS)
    world.storeOffMs = -seconds * SECOND_MS
    await world.advance(MINUTE_MS)
    expect(told.of('store.clock')).toEqual([])
  })

  test('is not what answers that take long look like, nor is a clock put forward', async () => {
    const world = new VirtualWorld()
    const { line, told } = await worker(world)
    await world.advance(10 * SECOND_MS)
    for (let n = 0; n < 5; n++) {
      const list = line.hold('schedules.list')
      await world.until(() => list.held() === 1)
      await world.advance(2_900)
      list.open()
      await world.advance(10 * SECOND_MS)
    }
    world.storeOffMs = HOUR_MS
    await world.advance(MINUTE_MS)
    expect(told.of('store.clock')).toEqual([])
  })
})
