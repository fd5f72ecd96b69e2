import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, test } from 'vitest'
import { alone, instrument } from '../../test/support/virtual.ts'

describe('an instrument', () => {
  test('stands around each enqueue and each attempt, from start to end', async () => {
    const { hf, world, told } = alone()
    const seen: string[] = []
    instrument(hf, {
      aroundEnqueue: async (jobs, send) => {
        seen.push(`enqueue ${jobs.map(({ name }) => name).join()}`)
        const answers = await send()
        seen.push(`enqueued ${answers.map(({ outcome }) => outcome).join()}`)
        return answers
      },
      attemptStarted: ({ facts }) => void seen.push(`start ${facts.job}`),
      inAttempt: ({ facts }, run) => {
        seen.push(`in ${facts.job}`)
        return run()
      },
      attemptEnded: ({ attempt, outcome }, answer) =>
        void seen.push(`end ${attempt.facts.job}: ${outcome.type}, ${answer}`),
    })
    const job = hf.job({ name: 'job', run: () => void seen.push('run') })
    await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.completed').length === 1)
    expect(seen).toEqual([
      'enqueue job',
      'enqueued inserted',
      'start job',
      'in job',
      'run',
      'end job: succeeded, written',
    ])
  })

  test('gives handlers a context of its own, through every await; the first stands outermost', async () => {
    const { hf, world, told } = alone()
    const span = new AsyncLocalStorage<string>()
    for (const name of ['outer', 'inner'])
      instrument(hf, { inAttempt: (_, run) => span.run(`${span.getStore() ?? ''}/${name}`, run) })
    const seen: unknown[] = []
    const job = hf.job({
      name: 'job',
      async run() {
        await Promise.resolve()
        seen.push(span.getStore())
      },
    })
    await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.completed').length === 1)
    expect(seen).toEqual(['/outer/inner'])
    expect(span.getStore()).toBeUndefined()
  })

  test('that throws changes nothing, and is told', async () => {
    const { hf, world, told } = alone()
    const broken = (): never => {
      throw new Error('broken instrument')
    }
    instrument(hf, { attemptStarted: broken, attemptEnded: broken })
    const job = hf.job({ name: 'job', run: () => 'done' })
    const handle = await job.enqueue()
    await hf.work()
    expect(await world.run(handle.result())).toBe('done')
    expect(told.of('listener.failed')).toMatchObject([
      { event: 'instrumentation', error: { message: 'broken instrument' } },
      { event: 'instrumentation', error: { message: 'broken instrument' } },
    ])
  })

  test('that was removed is not told any more', async () => {
    const { hf, world, told } = alone()
    let starts = 0
    const remove = instrument(hf, { attemptStarted: () => void starts++ })
    const job = hf.job({ name: 'job', run: () => undefined })
    await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.completed').length === 1)
    remove()
    await job.enqueue()
    await world.until(() => told.of('job.completed').length === 2)
    expect(starts).toBe(1)
  })

  test('is told of an attempt whose lease is lost', async () => {
    const { hf, world, line, told } = alone()
    const ends: unknown[] = []
    instrument(hf, { attemptEnded: ({ attempt }, answer) => void ends.push([attempt.facts.job, answer]) })
    const job = hf.job({ name: 'job', run: () => new Promise(() => undefined) })
    await job.enqueue()
    const worker = await hf.work({ lease: '10s' })
    await world.until(() => told.of('job.started').length === 1)
    line.breakDown()
    await world.store.retire(worker.id as never)
    await world.store.upkeep.rescue(10)
    line.mend()
    await world.until(() => told.of('job.lost').length === 1)
    expect(ends).toEqual([['job', 'lost']])
  })
})
