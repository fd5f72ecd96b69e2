/** Schedules in virtual time: what fires when, whoever leads, and what becomes of ticks that nobody was there for. */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  alone,
  busy,
  refused,
  replyLost,
  requestLost,
  VirtualWorld,
  type Process,
} from '../../test/support/virtual.ts'
import type { Duration } from '../std/duration.ts'

const MINUTE_MS = 60_000

function ticksIn(told: { of(event: 'schedule.fired'): readonly { readonly tick: Date }[] }): number[] {
  return told.of('schedule.fired').map(({ tick }) => tick.getTime())
}

describe('a schedule', () => {
  test('fires at its ticks, with its input, from its definition', async () => {
    const { hf, world, told } = alone()
    const inputs: string[] = []
    hf.job({
      name: 'report',
      input: z.string(),
      schedule: { every: '1m', input: 'daily' },
      run: ({ input }) => void inputs.push(input),
    })
    await hf.work()
    await world.advance(5 * MINUTE_MS)
    expect(inputs).toEqual(['daily', 'daily', 'daily', 'daily', 'daily'])
    const ticks = ticksIn(told)
    expect(ticks.every((tick) => tick % MINUTE_MS === 0)).toBe(true)
    expect(told.of('schedule.fired').every(({ lateMs }) => lateMs <= 1_000)).toBe(true)
    expect(told.of('schedule.late')).toEqual([])
  })

  test('is made, changed, listed, paused, resumed, run at once and removed at run time', async () => {
    const { hf, world, told } = alone()
    const job = hf.job({ name: 'sweep', run: () => undefined })
    await hf.work()
    await job.schedule('hourly', { cron: '0 * * * *', tz: 'Europe/Berlin', overlap: 'skip' })
    const [schedule] = await hf.schedules.list()
    expect(schedule).toMatchObject({
      id: 'hourly',
      job: 'sweep',
      queue: 'default',
      timing: { cron: '0 * * * *', tz: 'Europe/Berlin', dst: 'once' },
      catchUp: 'latest',
      overlap: 'skip',
      paused: false,
      lastTick: null,
      lateMs: 0,
    })
    const [first, second] = schedule?.next(2) ?? []
    expect(schedule?.nextTick).toEqual(first)
    expect((second?.getTime() ?? 0) - (first?.getTime() ?? 0)).toBe(60 * MINUTE_MS)

    await schedule?.pause()
    await world.advance(150 * MINUTE_MS)
    expect(told.of('schedule.fired')).toEqual([])
    expect(await hf.schedules.get('hourly')).toMatchObject({ paused: true, lateMs: 0 })
    await schedule?.resume()
    await world.advance(1_000)
    expect(told.of('schedule.fired')).toEqual([])

    const id = await schedule?.run()
    await world.until(() => told.of('job.completed').some((event) => event.id === id))

    await job.schedule('hourly', { every: '30s' })
    await world.advance(MINUTE_MS)
    expect(told.of('schedule.fired').length).toBe(2)
    expect(await job.unschedule('hourly')).toBe(true)
    expect(await job.unschedule('hourly')).toBe(false)
    await world.advance(MINUTE_MS)
    expect(told.of('schedule.fired').length).toBe(2)
    expect(await hf.schedules.get('hourly')).toBeNull()
  })

  test('fires each tick once, whatever becomes of answers and leaders', async () => {
    const world = new VirtualWorld()
    const fleet = ['a', 'b', 'c'].map(() => world.process())
    const done: string[] = []
    for (const { hf, line } of fleet) {
      const job = hf.job({ name: 'tick', run: ({ job: { id } }) => void done.push(id) })
      line.fail('schedules.fire', replyLost, 3)
      await job.schedule('tick', { every: '1s', catchUp: 'all' })
      await hf.work({ lease: '6s' })
    }
    const begun = world.clock.now()
    await world.advance(20_000)
    // The leader goes without a word; another takes over.
    for (const { kill } of fleet.slice(0, 2)) kill()
    await world.advance(40_000)
    const expected = Math.floor(world.clock.now() / 1_000) - Math.floor(begun / 1_000)
    expect(new Set(done).size).toBe(done.length)
    expect(done.length).toBeGreaterThanOrEqual(expected - 2)
  })

  test('is left to the one that fires it by a leader of old that read it long ago', async () => {
    const world = new VirtualWorld()
    const [first, second] = [world.process(), world.process()]
    for (const { hf } of [first, second]) {
      const job = hf.job({ name: 'tick', run: () => undefined })
      await job.schedule('tick', { every: '1s', catchUp: 'all' })
      await hf.work({ lease: '1s' })
    }
    await world.advance(5_000)
    const read = first.line.hold('schedules.list')
    await world.until(() => read.held() === 1)
    first.line.fail('upkeep.lead', requestLost)
    await world.advance(2_900)
    const asked = first.line.callsTo('schedules.fire').length
    read.open()
    await world.advance(500)
    expect(first.line.callsTo('schedules.fire').length - asked).toBe(1)
    const ticks = [...ticksIn(first.told), ...ticksIn(second.told)].toSorted((a, b) => a - b)
    expect(ticks.map((tick) => tick - (ticks[0] ?? 0))).toEqual(ticks.map((_, index) => index * 1_000))
    expect(ticks.length).toBeGreaterThanOrEqual(8)
  })

  test.for([
    ['all', {}, 10],
    ['all', { catchUpLimit: 4 }, 4],
    ['latest', {}, 1],
    ['skip', {}, 0],
  ] as const)('that nobody was there for catches up: %s %o', async ([catchUp, limit, count]) => {
    const { hf, world, told } = alone()
    const job = hf.job({ name: 'sweep', run: () => undefined })
    const worker = await hf.work()
    await job.schedule('often', { cron: '30 * * * * *', catchUp, ...limit })
    await world.run(worker.stop())
    // The virtual clock begins at a full minute: ten ticks come, the last of them 35 s ago.
    await world.advance(10 * MINUTE_MS + 5_000 - (world.clock.now() % MINUTE_MS))
    await hf.work()
    await world.advance(2_000)
    expect(ticksIn(told).length).toBe(count)
    expect(ticksIn(told)).toEqual(ticksIn(told).toSorted((a, b) => a - b))
    const skipped = told.of('schedule.skipped').reduce((sum, { ticks }) => sum + ticks, 0)
    expect(skipped).toBe(10 - count)
    if (count > 0) expect(told.of('schedule.late').length).toBe(count)
    await world.advance(MINUTE_MS)
    expect(ticksIn(told).length).toBe(count + 1)
  })

  test.for(['allow', 'skip', 'queue'] as const)(
    'whose job takes longer than its interval: %s',
    async (overlap) => {
      const { hf, world } = alone()
      let running = 0
      let most = 0
      let runs = 0
      const job = hf.job({
        name: 'slow',
        async run({ signal }) {
          runs++
          most = Math.max(most, ++running)
          await busy(world.clock, 25_000, signal)
          running--
        },
      })
      await hf.work()
      await job.schedule('slow', { every: '10s', overlap, catchUp: 'all' })
      await world.advance(100_000)
      if (overlap === 'allow') expect(most).toBeGreaterThan(1)
      else expect(most).toBe(1)
      const expected = { allow: [9, 10], skip: [3, 4], queue: [3, 4] }[overlap]
      expect(expected).toContain(runs)
      await job.unschedule('slow')
    },
  )

  test('spreads its jobs by its jitter', async () => {
    const { hf, world, told } = alone()
    const job = hf.job({ name: 'poll', run: () => undefined })
    const startedMs: number[] = []
    hf.on('job.started', () => void startedMs.push(world.clock.now() % MINUTE_MS))
    await hf.work()
    await job.schedule('poll', { every: '1m', jitter: '20s' })
    await world.advance(10 * MINUTE_MS)
    expect(told.of('schedule.fired').length).toBe(10)
    expect(new Set(startedMs).size).toBeGreaterThan(5)
    expect(Math.max(...startedMs)).toBeLessThanOrEqual(22_000)
  })

  test('keeps what is due, and its pause, when it is stored again as it was', async () => {
    const { hf, world, told } = alone()
    const job = hf.job({ name: 'sweep', run: () => undefined })
    const worker = await hf.work()
    const spec = { every: '1m', catchUp: 'all' } as const
    await job.schedule('sweep', spec)
    await world.run(worker.stop())
    await world.advance(3 * MINUTE_MS)
    await job.schedule('sweep', spec)
    await hf.work()
    await world.advance(2_000)
    expect(told.of('schedule.fired').length).toBe(3)
    await (await hf.schedules.get('sweep'))?.pause()
    await job.schedule('sweep', spec)
    expect(await hf.schedules.get('sweep')).toMatchObject({ paused: true })
  })
})

describe('schedules of job definitions', () => {
  const declare = ({ hf }: Process<'default'>, every: Duration): void => {
    for (const name of ['a', 'b', 'c'])
      hf.job({ name, schedule: { every, catchUp: 'all' }, run: () => undefined })
  }

  test('that stand in the store already cost the next process one read', async () => {
    const world = new VirtualWorld()
    const [first, second, third] = [world.process(), world.process(), world.process()]
    declare(first, '1m')
    await first.hf.work()
    expect(first.line.callsTo('schedules.put').length).toBe(3)

    declare(second, '1m')
    // What it would read as the leader is another matter.
    second.line.fail('upkeep.lead', refused)
    await second.hf.work()
    expect(second.line.callsTo('schedules.list').length).toBe(1)
    expect(second.line.callsTo('schedules.put')).toEqual([])

    declare(third, '2m')
    await third.hf.work()
    const everyMs = 2 * MINUTE_MS
    const changed = ['a', 'b', 'c'].map((id) => expect.objectContaining({ id, timing: { every: everyMs } }))
    expect(await first.hf.schedules.list()).toEqual(changed)
  })
})

describe('refused before anything is written', () => {
  test.for([
    ['neither cron nor every', {}],
    ['both', { cron: '* * * * *', every: '1m' }],
    ['a pattern that cannot be read', { cron: 'now and then' }],
    ['a value out of range', { cron: '61 * * * *' }],
    ['a pattern that never comes', { cron: '0 0 31 2 *' }],
    ['a zone that is not known', { cron: '* * * * *', tz: 'Mars/Olympus' }],
    ['an interval below a second', { every: '500ms' }],
    ['a zone for an interval', { every: '1m', tz: 'Europe/Berlin' }],
    ['an unknown catch-up', { every: '1m', catchUp: 'some' }],
    ['an unknown overlap', { every: '1m', overlap: 'sometimes' }],
    ['an unknown option', { every: '1m', evry: '2m' }],
    ['no room to catch up', { every: '1m', catchUp: 'all', catchUpLimit: 0 }],
  ] as const)('%s', async ([, spec]) => {
    const { hf } = alone()
    const job = hf.job({ name: 'sweep', run: () => undefined })
    await expect(job.schedule('sweep', spec as never)).rejects.toMatchObject({
      code: 'HF_BAD_SCHEDULE',
      hint: expect.stringMatching(/./),
    })
    expect(() => hf.job({ name: 'other', schedule: spec as never, run: () => undefined })).toThrow(
      expect.objectContaining({ code: 'HF_BAD_SCHEDULE' }),
    )
    expect(await hf.schedules.list()).toEqual([])
  })

  test('an id that a schedule of another job has', async () => {
    const { hf } = alone()
    const one = hf.job({ name: 'one', run: () => undefined })
    const other = hf.job({ name: 'other', run: () => undefined })
    await one.schedule('nightly', { every: '1d' })
    await expect(other.schedule('nightly', { every: '1d' })).rejects.toMatchObject({
      code: 'HF_SCHEDULE_TAKEN',
      message: expect.stringContaining('"one"'),
    })
    expect(await other.unschedule('nightly')).toBe(false)
  })

  test('an input that the job refuses, and a name that is none', async () => {
    const { hf } = alone()
    const job = hf.job({ name: 'mail', input: z.object({ to: z.string() }), run: () => undefined })
    await expect(job.schedule('m', { every: '1m', input: { to: 1 } as never })).rejects.toMatchObject({
      code: 'HF_INVALID_INPUT',
    })
    await expect(job.schedule('no spaces', { every: '1m', input: { to: 'a' } })).rejects.toMatchObject({
      code: 'HF_BAD_SCHEDULE',
    })
    expect(await hf.schedules.list()).toEqual([])
  })
})
