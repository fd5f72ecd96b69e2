/** Schedules in the model test: ticks are fired concurrently, late and twice, and count once. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { StoredSchedule } from '../../src/stores/store.ts'
import { command, type Command } from './command.ts'
import { plainJob } from './commands-enqueue.ts'

const id = fc.constantFrom('nightly', 'hourly')
const tick = fc.nat({ max: 9 })

const put = command({
  name: 'put',
  params: fc.record({ id, spec: fc.json({ maxDepth: 1 }), nextTick: fc.option(tick) }),
  run: async (model, under, spec) => {
    await under.store.schedules.put(spec.id, spec)
    model.schedules.set(spec.id, { ...spec, lastTick: model.schedules.get(spec.id)?.lastTick ?? null })
    return []
  },
})

const remove = command({
  name: 'remove',
  params: fc.record({ id }),
  // The contract does not say whether a recreated schedule remembers its ticks, so names are not reused.
  when: (model, params) => (model.schedules.get(params.id)?.lastTick ?? null) === null,
  run: async (model, under, params) => {
    assert.equal(await under.store.schedules.put(params.id, null), model.schedules.delete(params.id))
    return []
  },
})

const fire = command({
  name: 'fire',
  params: fc.record({ id, tick, nextTick: fc.option(tick), atOnce: fc.integer({ min: 1, max: 3 }) }),
  run: async (model, under, params) => {
    const jobs = Array.from({ length: params.atOnce }, () => plainJob(model))
    const answers = await Promise.all(
      jobs.map((job) => under.store.schedules.fire(params.id, params.tick, params.nextTick, job)),
    )
    const schedule = model.schedules.get(params.id)
    const fires = schedule !== undefined && (schedule.lastTick === null || schedule.lastTick < params.tick)
    const otherwise = schedule === undefined ? 'missing' : 'already'
    assert.equal(
      answers.filter((answer) => answer === 'fired').length,
      fires ? 1 : 0,
      `${answers.join(', ')}`,
    )
    answers.forEach((answer, index) => {
      const job = jobs[index] ?? assert.fail()
      if (answer === 'fired') model.insert(job)
      else model.absent.add(job.id)
      assert.ok(answer === 'fired' || answer === otherwise, `it is ${otherwise}, not ${answer}`)
    })
    if (fires)
      model.schedules.set(params.id, { ...schedule, lastTick: params.tick, nextTick: params.nextTick })
    const byId = (a: StoredSchedule, b: StoredSchedule): number => (a.id < b.id ? -1 : 1)
    const listed = (await under.store.schedules.list()).schedules.toSorted(byId)
    assert.deepEqual(listed, [...model.schedules.values()].toSorted(byId), 'the schedules as they are listed')
    return jobs.map((job) => job.id)
  },
})

export const scheduleCommands: readonly fc.Arbitrary<Command>[] = [put, remove, fire]
