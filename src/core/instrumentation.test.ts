import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Instrument } from './instrumentation.ts'
import { testQueue } from '../testing/index.ts'
import type { CycleRequest } from '../stores/store.ts'
import { alone, instrument, refused, thrownBy, type Call } from '../../test/support/virtual.ts'

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
      handlerEnded: ({ facts }, outcome) => void seen.push(`ran ${facts.job}: ${outcome?.type}`),
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
      'ran job: succeeded',
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

const settles = ({ method, args }: Call): boolean =>
  method === 'cycle' && (args[0] as CycleRequest).settle.length > 0

const broken = (): never => {
  throw new Error('broken instrument')
}
const HOOKS = [
  'metadata',
  'attemptStarted',
  'inAttempt',
  'inBatch',
  'handlerEnded',
  'attemptEnded',
  'aroundEnqueue',
] as const

/** An instrument whose every function does the same. */
function all(act: (...args: readonly unknown[]) => unknown): Instrument {
  return Object.fromEntries(HOOKS.map((hook) => [hook, act]))
}

/** What each function is given last, if it is a function: run or send. */
const entryOf = (args: readonly unknown[]): (() => unknown) => {
  const last = args.at(-1)
  return typeof last === 'function' ? (last as () => unknown) : () => undefined
}

const breaking: readonly (readonly [string, Instrument, number])[] = [
  ['throws', all(broken), 6],
  ['is rejected', all(() => Promise.reject(new Error('broken instrument'))), 6],
  ['throws after it has entered', all((...args) => (entryOf(args)(), broken())), 6],
  ['is rejected after it has entered', all(async (...args) => (await entryOf(args)(), broken())), 6],
  ['returns nothing and never enters', all(() => undefined), 0],
  ['enters too late', all(async (...args) => (await Promise.resolve(), entryOf(args)())), 0],
  ['enters twice', all((...args) => (entryOf(args)(), void entryOf(args)())), 0],
  ['never returns from a promise', all(() => new Promise(() => undefined)), 0],
]

describe.each(breaking)('an instrument that %s', (_, added, failures) => {
  test.each(['plain', 'batch'] as const)('changes nothing for a %s job', async (kind) => {
    const { hf, world, told } = alone()
    instrument(hf, added)
    const ran: number[] = []
    const input = z.number()
    const job =
      kind === 'plain'
        ? hf.job({ name: 'job', input, run: (ctx) => (ran.push(ctx.input), ctx.input * 2) })
        : hf.batchJob({
            name: 'job',
            input,
            batch: { size: 10 },
            run: ({ inputs }) => (ran.push(...inputs), inputs.map((n) => n * 2)),
          })
    const handle = await job.enqueue(21)
    expect(handle.outcome).toBe('inserted')
    expect(await world.counts()).toEqual({ ready: 1 })
    await hf.work()
    expect(await world.run(handle.result())).toBe(42)
    expect(ran).toEqual([21])
    expect(told.of('job.enqueued')).toHaveLength(1)
    expect(told.of('listener.failed')).toHaveLength(
      failures === 0 ? 0 : failures + (kind === 'batch' ? 1 : 0),
    )
    for (const one of told.of('listener.failed'))
      expect(one).toMatchObject({ event: 'instrumentation', error: { message: 'broken instrument' } })
  })

  test('does not hide that a handler throws, or that the store fails', async () => {
    const { hf, world, told, line } = alone({ timeout: '1s' })
    instrument(hf, added)
    const job = hf.job({
      name: 'job',
      retry: { attempts: 1 },
      run: () => {
        throw new Error('handler')
      },
    })
    await job.enqueue()
    await hf.work()
    await world.until(() => told.of('job.failed').length === 1)
    expect(told.of('job.failed')).toMatchObject([{ error: { message: 'handler' } }])
    line.fail('enqueue', refused)
    expect(await world.run(thrownBy(job.enqueue()))).toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
  })
})

describe('an instrument', () => {
  test('that awaits what it sent is not to blame for a store that fails', async () => {
    const { hf, world, told, line } = alone({ timeout: '1s' })
    instrument(hf, { aroundEnqueue: async (_, send) => void (await send()) })
    line.fail('enqueue', refused)
    const job = hf.job({ name: 'job', run: () => undefined })
    expect(await world.run(thrownBy(job.enqueue()))).toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
    expect(told.of('listener.failed')).toEqual([])
  })

  test('gives a batch handler a context of its own, which is that of none of its jobs', async () => {
    const { hf, world, told } = alone()
    const span = new AsyncLocalStorage<string>()
    let batch = 0
    instrument(hf, {
      inAttempt: ({ facts }, run) => span.run(facts.id, run),
      inBatch: (attempts, run) => {
        batch = attempts.length
        return span.run(`${span.getStore() ?? 'root'}/batch`, run)
      },
    })
    const seen: unknown[] = []
    const job = hf.batchJob({
      name: 'job',
      batch: { size: 3 },
      async run() {
        await Promise.resolve()
        seen.push(span.getStore())
      },
    })
    await job.enqueueMany([undefined, undefined, undefined])
    await hf.work()
    await world.until(() => told.of('job.completed').length === 3)
    expect(seen).toEqual(['root/batch'])
    expect(batch).toBe(3)
  })

  test('hears how a handler ended before the store has answered', async () => {
    const { hf, world, line, told } = alone()
    const ends: string[] = []
    instrument(hf, { handlerEnded: ({ facts }, outcome) => void ends.push(`${facts.job} ${outcome?.type}`) })
    const good = hf.job({ name: 'good', run: () => Promise.resolve('done') })
    const bad = hf.job({ name: 'bad', run: () => Promise.reject(new Error('no')) })
    const batch = hf.batchJob({ name: 'batch', batch: { size: 1 }, run: () => Promise.resolve() })
    await good.enqueue()
    await bad.enqueue()
    await batch.enqueue()
    line.fail(settles, refused)
    await hf.work()
    await world.until(() => ends.length === 3)
    expect(told.of('job.completed')).toEqual([])
    line.mend()
    expect(ends.toSorted()).toEqual(['bad failed', 'batch succeeded', 'good succeeded'])
  })

  test('adds metadata in the context of the code that enqueues, however the flush travels', async () => {
    const { hf, world, line, told } = alone()
    const span = new AsyncLocalStorage<string>()
    instrument(hf, {
      metadata: ({ kind }) => {
        const trace = span.getStore()
        return trace === undefined ? undefined : { trace, kind }
      },
    })
    const seen: unknown[] = []
    const child = hf.job({ name: 'child', run: ({ job }) => void seen.push(job.metadata) })
    const job = hf.job({
      name: 'job',
      input: z.string().refine((value) => Promise.resolve(value !== '')),
      run: async ({ job: { metadata } }) => {
        seen.push(metadata)
        await child.enqueue()
      },
    })
    hf.subscribe({
      name: 'hears',
      to: 'user.created',
      run: ({ job: { metadata } }) => void seen.push(metadata),
    })
    const created = hf.event('user.created')
    await hf.work()
    // The second and third travel in one flush.
    await Promise.all([
      span.run('a', () => job.enqueue('a')),
      span.run('b', () => child.enqueue()),
      child.enqueue(undefined, { metadata: { own: 'yes' } }),
      span.run('c', () => child.enqueue(undefined, { metadata: { own: 'yes' } })),
      span.run('d', () => created.publish()),
    ])
    expect(line.callsTo('enqueue').length).toBeLessThan(5)
    await world.until(() => told.of('job.completed').length === 6)
    const sorted = seen.map((one) => JSON.stringify(one)).toSorted()
    expect(sorted).toEqual([
      '{"own":"yes","trace":"c","kind":"job"}',
      '{"own":"yes"}',
      '{"trace":"a","kind":"job"}',
      '{"trace":"a","kind":"job"}',
      '{"trace":"b","kind":"job"}',
      '{"trace":"d","kind":"event"}',
    ])
  })

  test('whose metadata cannot be stored is told, and the job is enqueued without it', async () => {
    const { hf, told, world } = alone()
    instrument(hf, { metadata: () => ({ trace: 7 as never }) })
    instrument(hf, { metadata: () => ({ good: 'yes' }) })
    const { id } = await hf.job({ name: 'job', run: () => undefined }).enqueue()
    expect((await world.record(id)).envelope.metadata).toEqual({ good: 'yes' })
    expect(told.of('listener.failed')).toMatchObject([{ error: { code: 'HF_BAD_OPTION' } }])
  })

  test('stands around enqueues in transactions and ticks of schedules, too', async () => {
    const { hf, told } = alone()
    const seen: string[] = []
    instrument(hf, {
      metadata: () => ({ trace: 'yes' }),
      aroundEnqueue: async (jobs, send) => {
        const outcomes = (await send()).map(({ outcome }) => outcome)
        seen.push(
          `${jobs.map(({ name, envelope }) => name + envelope.metadata['trace']).join()}: ${outcomes.join()}`,
        )
      },
    })
    const job = hf.job({ name: 'job', run: () => undefined })
    hf.job({ name: 'nightly', schedule: { every: '1d' }, run: () => undefined })
    hf.subscribe({ name: 'hears', to: 'user.created', run: () => undefined })
    await using t = await testQueue(hf)
    const tx = { prepare: () => undefined, exec: () => undefined, close: () => undefined }
    await job.enqueue(undefined, { tx })
    job.enqueueSync(undefined, { tx })
    await job.enqueueMany([undefined], { tx })
    await hf.enqueueMany([job.with()], { tx })
    await hf.event('user.created').publish(undefined, { tx })
    expect(told.of('job.enqueued')).toEqual([])
    await hf.enqueueMany([job.with()])
    await t.drain({ until: '2030-01-02T00:00:00Z' })
    expect(seen.slice(0, 4)).toEqual(Array.from({ length: 4 }, () => 'jobyes: inserted'))
    expect(seen.slice(4)).toEqual(['hearsyes: inserted', 'jobyes: inserted', 'nightlyyes: inserted'])
  })
})
