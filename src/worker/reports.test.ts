import { describe, expect, test } from 'vitest'
import { HoldfastError } from '../errors.ts'
import type { RunContext } from '../job/context.ts'
import type { CycleRequest, Report } from '../stores/store.ts'
import { alone, busy, deferred, refused, requestLost } from '../../test/support/virtual.ts'

type Context = RunContext<undefined, object>
type Line = ReturnType<typeof alone>['line']

function reportsOf({ method, args }: { method: string; args: readonly unknown[] }): readonly Report[] {
  return method === 'cycle' ? ((args[0] as CycleRequest).reports ?? []) : []
}

function hasReports(call: { method: string; args: readonly unknown[] }): boolean {
  return reportsOf(call).length > 0
}

function reportsIn(line: Line): readonly Report[] {
  return line.callsTo('cycle').flatMap(reportsOf)
}

/** A job that is told from outside what to say. */
async function speaking() {
  const setting = alone()
  const { hf, world } = setting
  const given = deferred<Context>()
  const gate = deferred()
  const job = hf.job({
    name: 'speaking',
    async run(context) {
      given.resolve(context)
      await gate.promise
    },
  })
  const handle = await job.enqueue()
  await hf.work()
  await world.advance(10)
  return { ...setting, context: await given.promise, gate, handle }
}

describe('progress', () => {
  test('is told as an event at once and in the record within a quarter of a second', async () => {
    const { world, told, context, handle, gate } = await speaking()
    context.progress(2, 10, 'reading')
    expect(told.of('job.progress')).toMatchObject([
      { id: handle.id, done: 2, total: 10, note: 'reading', attempt: 1 },
    ])
    await world.advance(250)
    expect((await world.record(handle.id)).progress).toEqual({ done: 2, total: 10, note: 'reading' })
    gate.resolve()
  })

  test('may come in a tight loop: the store is told the newest only, four times a second at most', async () => {
    const { world, context, handle, gate, line, clock } = await speaking()
    for (let n = 1; n <= 500; n++) {
      context.progress(n, 500)
      await busyAndAdvance(world, clock)
    }
    await world.advance(300)
    expect((await world.record(handle.id)).progress?.done).toBe(500)
    expect(reportsIn(line).length).toBeLessThanOrEqual(8)
    gate.resolve()
  })

  test('is written before the end of the attempt', async () => {
    const { hf, world, told } = alone()
    const job = hf.job({
      name: 'quick',
      run({ progress, log }) {
        progress(1, 1, 'all of it')
        log.info('done')
      },
    })
    const { id } = await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.completed').length === 1)
    const record = await world.record(id)
    expect(record.progress).toEqual({ done: 1, total: 1, note: 'all of it' })
    expect(record.log).toHaveLength(1)
  })

  test('is no reason to fail: numbers that are none are left out', async () => {
    const { world, context, handle, gate } = await speaking()
    context.progress(Number.NaN, Infinity)
    await world.advance(250)
    expect((await world.record(handle.id)).progress).toEqual({ done: 0, total: null, note: null })
    gate.resolve()
  })
})

describe('the log of a handler', () => {
  test('is kept with the job and told as events, with fields and level', async () => {
    const { world, told, context, handle, gate } = await speaking()
    context.log.info('started', { rows: 3 })
    context.log.error('a\0b')
    await world.advance(250)
    const { log } = await world.record(handle.id)
    expect(log).toMatchObject([
      { at: world.clock.now() - 250, level: 'info', message: 'started', fields: '{"rows":3}' },
      { level: 'error', fields: null },
    ])
    expect(log[1]?.message).not.toContain('\0')
    expect(told.of('job.log')).toMatchObject([{ level: 'info', fields: { rows: 3 } }, { level: 'error' }])
    gate.resolve()
  })

  test('keeps the newest hundred lines, and sends no more', async () => {
    const { world, context, handle, gate, line } = await speaking()
    for (let n = 0; n < 250; n++) context.log.debug(`line ${n}`)
    await world.advance(250)
    const { log } = await world.record(handle.id)
    expect(log).toHaveLength(100)
    expect(log[0]?.message).toBe('line 150')
    const [report] = reportsIn(line)
    expect(report?.log).toHaveLength(100)
    gate.resolve()
  })

  test('takes fields that JSON cannot hold', async () => {
    const { world, context, handle, gate } = await speaking()
    const cycle: Record<string, unknown> = { big: 1n }
    cycle['self'] = cycle
    context.log.warn('odd', cycle)
    await world.advance(250)
    expect((await world.record(handle.id)).log).toHaveLength(1)
    gate.resolve()
  })
})

describe('reports', () => {
  test('that the store does not take never disturb the job', async () => {
    const { world, told, context, handle, gate, line } = await speaking()
    line.fail(hasReports, refused)
    context.progress(1)
    await world.advance(1_000)
    gate.resolve()
    await world.until(() => told.about(handle.id).includes('job.completed'))
  })

  test('that the store refuses are dropped, and everything else of their call is written', async () => {
    const { world, told, context, handle, gate, line } = await speaking()
    line.fail(hasReports, () => Promise.reject(new HoldfastError('HF_STORE_REFUSED', 'no such text')))
    context.progress(1)
    gate.resolve()
    const tookMs = await world.until(() => told.about(handle.id).includes('job.completed'))
    expect(tookMs).toBeLessThanOrEqual(100)
    expect((await world.record(handle.id)).progress).toBeNull()
  })

  test('that hang keep the end of the job from being written for their deadline at most', async () => {
    const { world, told, context, handle, gate, line } = await speaking()
    line.fail(hasReports, requestLost)
    context.progress(1)
    gate.resolve()
    const tookMs = await world.until(() => told.about(handle.id).includes('job.completed'))
    expect(tookMs).toBeLessThanOrEqual(5_000)
  })

  test('are about the attempts that made them', async () => {
    const { hf, world, told, line } = alone()
    const job = hf.job({ name: 'job', run: ({ progress, job: { attempt } }) => progress(attempt) })
    await job.enqueue()
    await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.completed').length === 2)
    expect(reportsIn(line).map(({ position }) => position)).toEqual([0, 1])
  })

  test('of a handler that goes on after its end are events only', async () => {
    const { world, told, context, handle, line, gate } = await speaking()
    await handle.cancel()
    await world.advance(6_000)
    expect(await handle.state()).toBe('cancelled')
    const before = reportsIn(line).length
    context.progress(7)
    context.log.info('still here')
    await world.advance(1_000)
    expect(reportsIn(line)).toHaveLength(before)
    expect(told.of('job.progress')).toHaveLength(1)
    expect(told.of('job.log')).toHaveLength(1)
    gate.resolve()
  })

  test('leave no timer behind when the worker stops in the same moment', async () => {
    const { hf, world, context, gate } = await speaking()
    context.progress(1)
    gate.resolve()
    await world.run(hf.close())
    expect(world.clock.nextDueMs()).toBeUndefined()
  })
})

async function busyAndAdvance(
  world: { advance(ms: number): Promise<void> },
  clock: Parameters<typeof busy>[0],
): Promise<void> {
  const pause = busy(clock, 3)
  await world.advance(3)
  await pause
}
