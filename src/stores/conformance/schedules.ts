/** Schedules: each tick fires once, together with its job, however many callers fire it. */
import assert from 'node:assert/strict'
import type { StoredSchedule } from '../store.ts'
import type { Topic } from './suite.ts'
import { MINUTE_MS, near, newJob, newJobs, type Harness } from './support.ts'

const SPEC = '{"cron":"0 3 * * *","tz":"Europe/Zürich"}'
const TICK = Date.UTC(2020, 0, 1)
const HOUR_MS = 60 * MINUTE_MS
const NEXT = TICK + MINUTE_MS

async function putNightly(harness: Harness): Promise<void> {
  await harness.store.schedules.put('nightly', { spec: SPEC, nextTick: TICK })
}

async function stored(harness: Harness, id = 'nightly'): Promise<StoredSchedule | undefined> {
  return (await harness.store.schedules.list()).schedules.find((schedule) => schedule.id === id)
}

export const schedulesTopic: Topic = {
  name: 'schedules',
  tests: {
    'a schedule reads back as it was put': async (harness) => {
      assert.deepEqual((await harness.store.schedules.list()).schedules, [])
      await putNightly(harness)
      await harness.store.schedules.put('paused one', { spec: '{}', nextTick: null })
      assert.deepEqual(await stored(harness), { id: 'nightly', spec: SPEC, nextTick: TICK, lastTick: null })
      const other = await stored(harness, 'paused one')
      assert.deepEqual(other, { id: 'paused one', spec: '{}', nextTick: null, lastTick: null })
    },
    'a removed schedule is gone, and removing it again says so': async (harness) => {
      await putNightly(harness)
      assert.equal(await harness.store.schedules.put('nightly', null), true)
      assert.equal(await harness.store.schedules.put('nightly', null), false)
      assert.deepEqual((await harness.store.schedules.list()).schedules, [])
    },
    'firing a tick enqueues its job and moves the schedule on': async (harness) => {
      await putNightly(harness)
      const job = newJob()
      assert.equal(await harness.store.schedules.fire('nightly', TICK, NEXT, job), 'fired')
      assert.deepEqual(await stored(harness), { id: 'nightly', spec: SPEC, nextTick: NEXT, lastTick: TICK })
      const claimed = await harness.claimOne(await harness.worker())
      assert.deepEqual([claimed.job.id, claimed.job.payload], [job.id, job.payload])
    },
    'the last tick of a schedule leaves none to come': async (harness) => {
      await putNightly(harness)
      await harness.store.schedules.fire('nightly', TICK, null, newJob())
      assert.equal((await stored(harness))?.nextTick, null)
    },
    'a tick that was fired is not fired again, nor is an older one': async (harness) => {
      await putNightly(harness)
      const [job, repeat, older] = [newJob(), newJob(), newJob()]
      await harness.store.schedules.fire('nightly', TICK, NEXT, job)
      const before = await stored(harness)
      assert.equal(await harness.store.schedules.fire('nightly', TICK, NEXT + 1, repeat), 'already')
      assert.equal(await harness.store.schedules.fire('nightly', TICK - 1, NEXT + 1, older), 'already')
      assert.equal(
        await harness.store.schedules.fire('nightly', TICK, NEXT, job),
        'already',
        'nor by a repeated call',
      )
      assert.deepEqual(await stored(harness), before, 'the schedule is not moved')
      for (const { id } of [repeat, older]) assert.equal(await harness.store.admin.get(id), null)
      assert.equal((await harness.claimIds(await harness.worker())).length, 1)
    },
    'a later tick is fired, also when ticks between were missed': async (harness) => {
      await putNightly(harness)
      assert.equal(await harness.store.schedules.fire('nightly', TICK, NEXT, newJob()), 'fired')
      assert.equal(
        await harness.store.schedules.fire('nightly', TICK + 5 * MINUTE_MS, null, newJob()),
        'fired',
      )
      assert.equal(await harness.store.schedules.fire('nightly', NEXT, null, newJob()), 'already')
    },
    'of those that fire one tick at once, exactly one does': async (harness) => {
      await putNightly(harness)
      const jobs = newJobs(10)
      const answers = await Promise.all(
        jobs.map((job) => harness.store.schedules.fire('nightly', TICK, NEXT, job)),
      )
      assert.deepEqual(answers.toSorted(), [...Array.from({ length: 9 }, () => 'already'), 'fired'])
      const winner = jobs[answers.indexOf('fired')]
      assert.deepEqual(await harness.claimIds(await harness.worker(), { limit: 20 }), [winner?.id])
    },
    'a schedule that is not there fires nothing': async (harness) => {
      const job = newJob()
      assert.equal(await harness.store.schedules.fire('nowhere', TICK, NEXT, job), 'missing')
      assert.equal(await harness.store.admin.get(job.id), null)
      assert.deepEqual((await harness.store.schedules.list()).schedules, [])
    },
    'changing a schedule keeps the ticks that it has fired': async (harness) => {
      await putNightly(harness)
      await harness.store.schedules.fire('nightly', TICK, NEXT, newJob())
      const changed = { spec: '{"every":"1m"}', nextTick: TICK }
      await harness.store.schedules.put('nightly', changed)
      assert.deepEqual(await stored(harness), { id: 'nightly', ...changed, lastTick: TICK })
      assert.equal(await harness.store.schedules.fire('nightly', TICK, NEXT, newJob()), 'already')
    },
    'the list tells the time of the store, without schedules too': async (harness) => {
      const before = await harness.store.schedules.list()
      near(before.now, await harness.now(), 'the time')
      await putNightly(harness)
      await harness.advance(HOUR_MS)
      const after = await harness.store.schedules.list()
      near(after.now, before.now + HOUR_MS, 'the time an hour later')
      assert.equal(after.schedules.length, 1)
    },
    'the list tells the time of a clock that was put back': async (harness) => {
      const before = await harness.store.schedules.list()
      await harness.advance(-HOUR_MS)
      near((await harness.store.schedules.list()).now, before.now - HOUR_MS, 'the time an hour earlier')
    },
    'ticks that were fired before the clock was put back do not silence the schedule': async (harness) => {
      await putNightly(harness)
      const fire = (tick: number, next: number | null) =>
        harness.store.schedules.fire('nightly', tick, next, newJob())
      const { now } = await harness.store.schedules.list()
      assert.equal(await fire(now, now + 1), 'fired')
      await harness.advance(-HOUR_MS)
      assert.equal(await fire(now, null), 'already', 'the last one is fired already')
      const early = now - HOUR_MS + MINUTE_MS
      assert.equal(await fire(early, early + 1), 'fired')
      const moved = { id: 'nightly', spec: SPEC, nextTick: early + 1, lastTick: early }
      assert.deepEqual(await stored(harness), moved)
      assert.equal(await fire(early, null), 'already')
      await harness.advance(2 * MINUTE_MS)
      assert.equal(await fire(early - 1, null), 'already', 'once its time has come')
      assert.deepEqual(await stored(harness), moved)
    },
    'schedules do not share their ticks': async (harness) => {
      await putNightly(harness)
      await harness.store.schedules.put('other', { spec: SPEC, nextTick: TICK })
      assert.equal(await harness.store.schedules.fire('nightly', TICK, NEXT, newJob()), 'fired')
      assert.equal(await harness.store.schedules.fire('other', TICK, NEXT, newJob()), 'fired')
    },
  },
}
