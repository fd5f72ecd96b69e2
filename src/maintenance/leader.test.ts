import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { alone, refused, requestLost, VirtualWorld, type Process } from '../../test/support/virtual.ts'

async function fleetOf(world: VirtualWorld, count: number) {
  const fleet: (Process<'default'> & { leads: () => boolean; stop: () => Promise<void> })[] = []
  for (let n = 0; n < count; n++) {
    const process = world.process()
    process.hf.job({ name: 'job', input: z.number(), run: () => undefined })
    const worker = await process.hf.work()
    const { told } = process
    const leads = (): boolean => told.of('leader.elected').length > told.of('leader.lost').length
    fleet.push({ ...process, leads, stop: () => worker.stop() })
    await world.advance(100)
  }
  return fleet
}

describe('the leader of a fleet', () => {
  test('is one, and stays it', async () => {
    const world = new VirtualWorld()
    const fleet = await fleetOf(world, 4)
    await world.advance(600_000)
    expect(fleet.map((process) => process.leads())).toEqual([true, false, false, false])
    expect(fleet.flatMap(({ told }) => told.of('leader.lost'))).toEqual([])
  })

  test('alone does the upkeep', async () => {
    const world = new VirtualWorld()
    const [leader, ...others] = await fleetOf(world, 3)
    await world.advance(120_000)
    for (const duty of ['upkeep.promote', 'upkeep.rescue', 'upkeep.prune']) {
      expect(leader!.line.callsTo(duty).length).toBeGreaterThan(1)
      for (const { line } of others) expect(line.callsTo(duty)).toEqual([])
    }
  })

  test('that dies is replaced when its term is over', async () => {
    const world = new VirtualWorld()
    const [leader, ...others] = await fleetOf(world, 3)
    await world.advance(20_000)
    leader!.kill()
    const tookMs = await world.until(() => others.some((process) => process.leads()))
    expect(tookMs).toBeLessThanOrEqual(10_000 + 3_400)
    await world.advance(1)
    expect(others.some(({ line }) => line.callsTo('upkeep.promote').length > 0)).toBe(true)
    await world.advance(60_000)
    expect(others.filter((process) => process.leads())).toHaveLength(1)
  })

  test('that stops steps down, and the next one takes over at its next try', async () => {
    const world = new VirtualWorld()
    const [leader, ...others] = await fleetOf(world, 3)
    await world.advance(20_000)
    await world.run(leader!.stop())
    expect(leader!.line.callsTo('upkeep.lead').filter(({ args }) => args[1] === 0)).toHaveLength(1)
    const tookMs = await world.until(() => others.some((process) => process.leads()))
    expect(tookMs).toBeLessThanOrEqual(3_400)
  })

  test.each([
    ['fails', refused],
    ['is never answered', requestLost],
  ])('is nobody where the election %s: an error means "not the leader"', async (_, fault) => {
    const { hf, world, told, line } = alone()
    hf.job({ name: 'job', run: () => undefined })
    await hf.work()
    await world.advance(20_000)
    expect(told.of('leader.elected')).toHaveLength(1)
    line.fail('upkeep.lead', fault)
    await world.until(() => told.of('leader.lost').length === 1, 15_000)
    await world.advance(1_000)
    const before = line.calls.length
    await world.advance(30_000)
    const since = new Set(line.calls.slice(before).map(({ method }) => method))
    expect(since.has('upkeep.promote')).toBe(false)
    expect(since.has('upkeep.rescue')).toBe(false)
    line.mend()
    await world.until(() => told.of('leader.elected').length === 2, 10_000)
  })

  test('stops leading by itself when its term runs out unheard', async () => {
    const { hf, world, line, freeze, thaw, told } = alone()
    hf.job({ name: 'job', run: () => undefined })
    await hf.work()
    await world.advance(20_000)
    freeze()
    await world.advance(60_000)
    const before = line.calls.length
    line.fail('upkeep.lead', requestLost)
    thaw()
    await world.advance(2_000)
    expect(line.calls.slice(before).map(({ method }) => method)).not.toContain('upkeep.promote')
    line.mend()
    await world.advance(20_000)
    expect(told.of('duty.failed')).toEqual([])
  })
})

describe('two leaders at once', () => {
  test('are harmless: every job runs once, every rescue happens once', async () => {
    const world = new VirtualWorld()
    const fleet = await fleetOf(world, 3)
    // Everybody is told that they lead.
    for (const { line } of fleet) line.fail('upkeep.lead', async (perform) => (await perform(), true))
    await world.advance(40_000)
    expect(fleet.every((process) => process.leads())).toBe(true)
    const job = world.process().hf.contract({ name: 'job', input: z.number() })
    await job.enqueueMany(
      Array.from({ length: 300 }, (_, n) => n),
      { in: '5s' },
    )
    await world.advance(30_000)
    const ends = fleet.flatMap(({ told }) => told.of('job.completed'))
    expect(ends).toHaveLength(300)
    expect(new Set(ends.map((event) => event.id)).size).toBe(300)
    expect(await world.counts()).toEqual({ completed: 300 })
  })
})
