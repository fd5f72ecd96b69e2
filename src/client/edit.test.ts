import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { alone, busy, thrownBy } from '../../test/support/virtual.ts'

function editable() {
  const fleet = alone()
  const ran: unknown[] = []
  const job = fleet.hf.job({
    name: 'edit-me',
    input: z.object({ to: z.string() }),
    run: async ({ input }) => {
      ran.push(input.to)
      await busy(fleet.clock, 1_000)
    },
  })
  return { ...fleet, job, ran }
}

describe('edit', () => {
  test('changes the input of a job that waits', async () => {
    const { hf, world, told, job, ran } = editable()
    const { id } = await job.enqueue({ to: 'ada' })
    expect(await job.edit(id, { input: { to: 'grace' } })).toBe(true)
    await hf.work()
    await world.until(() => told.of('job.completed').length === 1)
    expect(ran).toEqual(['grace'])
  })

  test('changes its time and its priority', async () => {
    const { hf, world, told, job, ran } = editable()
    const later = await job.enqueue({ to: 'later' })
    const urgent = await job.enqueue({ to: 'urgent' }, { in: '1h' })
    await job.enqueue({ to: 'plain' })
    expect(await job.edit(later.id, { in: '10m' })).toBe(true)
    expect(await job.edit(urgent.id, { at: new Date(world.clock.now()), priority: 'urgent' })).toBe(true)
    await hf.work({ concurrency: 1 })
    await world.until(() => told.of('job.completed').length === 3)
    expect(ran).toEqual(['urgent', 'plain', 'later'])
    expect(world.nowMs).toBeGreaterThanOrEqual(600_000)
  })

  test('comes too late for a job that runs, and for one that is over', async () => {
    const { hf, world, told, job } = editable()
    const { id } = await job.enqueue({ to: 'ada' })
    await hf.work()
    await world.until(() => told.of('job.started').length === 1)
    expect(await job.edit(id, { in: '1h' })).toBe(false)
    await world.until(() => told.of('job.completed').length === 1)
    expect(await job.edit(id, { in: '1h' })).toBe(false)
  })

  test.each([
    [{ input: { to: 7 } }, 'HF_INVALID_INPUT'],
    [{ priority: 12 }, 'HF_BAD_OPTION'],
    [{ in: '1h', at: new Date(0) }, 'HF_BAD_OPTION'],
    [{ queue: 'mail' }, 'HF_BAD_OPTION'],
  ])('refuses %j, and changes nothing', async (changes, code) => {
    const { world, job } = editable()
    const { id } = await job.enqueue({ to: 'ada' })
    const before = await world.record(id)
    expect(await thrownBy(job.edit(id, changes as never))).toMatchObject({ code })
    expect(await world.record(id)).toEqual(before)
  })

  test('knows no job of another name, nor one that is not there', async () => {
    const { hf, job } = editable()
    const other = await hf.job({ name: 'other', run: () => undefined }).enqueue()
    for (const id of [other.id, '017f22e2-79b0-7cc3-98c4-dc0c0c07398f'])
      expect(await thrownBy(job.edit(id, { in: '1h' }))).toMatchObject({ code: 'HF_JOB_NOT_FOUND' })
  })
})
