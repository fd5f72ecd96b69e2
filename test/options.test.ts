/**
 * Every object of options that users pass, one row each: what is misspelt is refused with the nearest name and all the
 * others, and what has a wrong type or is out of range with the path of the option.
 */
import { afterAll, describe, expect, test } from 'vitest'
import { holdfast } from '../src/index.ts'
import { memoryStore } from '../src/stores/memory/index.ts'
import { postgresSchema, postgresStore } from '../src/stores/postgres/index.ts'
import { redisStore } from '../src/stores/redis/index.ts'
import { sqliteStore } from '../src/stores/sqlite/index.ts'
import { testQueue } from '../src/testing/index.ts'
import { thrownBy } from './support/virtual.ts'

interface Row {
  /** What the options are passed to, or the path of an object inside of options. */
  readonly path: string
  /** May throw, or return a promise that is rejected. */
  readonly give: (options: never) => unknown
  readonly code?: string
  readonly typo: readonly [written: string, meant: string]
  /** As the hint lists them. */
  readonly fields: string
  /** Options that cannot work, each with the path of the one that is at fault. */
  readonly bad: readonly (readonly [options: object, path: string])[]
}

const hf = holdfast({ store: 'memory:', logger: false })
const job = hf.job({ name: 'job', run: () => undefined })
const event = hf.event('happened')
const inTest = holdfast({ store: 'memory:', logger: false })
inTest.job({ name: 'job', run: () => undefined })
afterAll(() => Promise.all([hf.close(), inTest.close()]))

let names = 0
const name = (): string => `job-${names++}`
const run = (): void => undefined

const RETRY = 'attempts, crashes, backoff, delay, factor, maxDelay, jitter, when'
const BAD_RETRY: Row['bad'] = [
  [{ attempts: '3' }, 'attempts'],
  [{ attempts: 0 }, 'attempts'],
  [{ crashes: -1 }, 'crashes'],
  [{ backoff: 'often' }, 'backoff'],
  [{ delay: 'soon' }, 'delay'],
  [{ factor: 0.5 }, 'factor'],
  [{ maxDelay: null }, 'maxDelay'],
  [{ jitter: 2 }, 'jitter'],
  [{ when: true }, 'when'],
]
const UNIQUE = 'key, while, for, onConflict'
const BAD_UNIQUE: Row['bad'] = [
  [{}, 'key'],
  [{ key: 'x'.repeat(513) }, 'key'],
  [{ key: 'k', while: 'always' }, 'while'],
  [{ key: 'k', for: 0 }, 'for'],
  [{ key: 'k', onConflict: 5 }, 'onConflict'],
]
const ENVELOPE: Row['bad'] = [
  [{ tags: 'a' }, 'tags'],
  [{ tags: ['a', 5] }, 'tags[1]'],
  [{ tags: Array.from({ length: 51 }, String) }, 'tags'],
  [{ correlationId: '' }, 'correlationId'],
  [{ metadata: null }, 'metadata'],
  [{ metadata: { a: 5 } }, 'metadata.a'],
]
const NEW_JOB: Row['bad'] = [
  ...ENVELOPE,
  [{ priority: 'asap' }, 'priority'],
  [{ priority: 10 }, 'priority'],
  [{ timeout: 0 }, 'timeout'],
  [{ expiresIn: '1 week' }, 'expiresIn'],
  [{ retry: 5 }, 'retry'],
  [{ retry: { attempts: 1.5 } }, 'retry.attempts'],
]
const ENQUEUE: Row['bad'] = [...NEW_JOB, [{ in: -1 }, 'in'], [{ at: 5 }, 'at']]
const LIMITS: Row['bad'] = [
  [{ idle: 'long' }, 'idle'],
  [{ errorRate: 10 }, 'errorRate'],
  [{ queueSize: '5' }, 'queueSize'],
]
const BULK: Row['bad'] = [
  [{ onProgress: true }, 'onProgress'],
  [{ signal: 5 }, 'signal'],
]
const FILTER_FIELDS =
  'ids, queues, jobs, fingerprints, since, until, enqueuedSince, enqueuedUntil, tags, idPrefix'
const TIMES: Row['bad'] = [
  [{ since: 'yesterday' }, 'since'],
  [{ enqueuedUntil: 5 }, 'enqueuedUntil'],
]
const SCHEDULE = 'cron, tz, dst, every, catchUp, catchUpLimit, overlap, jitter, input, options'
const NOTICE: Row['bad'] = [[{ onNotice: 'stderr' }, 'onNotice']]

const DEFINITIONS: readonly Row[] = [
  {
    path: 'holdfast()',
    give: (options) => holdfast(options),
    typo: ['queue', 'queues'],
    fields: 'store, queues, keep, timeout, health, logger',
    bad: [
      [{ queues: 5 }, 'queues'],
      [{ queues: ['mail'] }, 'queues'],
      [{ keep: null }, 'keep'],
      [{ timeout: '6m' }, 'timeout'],
      [{ health: null }, 'health'],
      [{ logger: 5 }, 'logger'],
      [{ logger: { info: run } }, 'logger'],
    ],
  },
  {
    path: 'holdfast().queues.mail',
    give: (mail) => holdfast({ queues: { mail } }),
    typo: ['deadletters', 'deadLetters'],
    fields: 'aging, deadLetters',
    bad: [
      [{ aging: 0 }, 'aging'],
      [{ deadLetters: 'no' }, 'deadLetters'],
    ],
  },
  {
    path: 'holdfast().keep',
    give: (keep) => holdfast({ keep }),
    typo: ['canceled', 'cancelled'],
    fields: 'completed, dead, cancelled, maxCompleted, maxDead, maxCancelled, attempts',
    bad: [
      [{ completed: 'a day' }, 'completed'],
      [{ maxDead: -1 }, 'maxDead'],
      [{ attempts: 101 }, 'attempts'],
    ],
  },
  {
    path: 'holdfast().health',
    give: (health) => holdfast({ health }),
    typo: ['evry', 'every'],
    fields: 'every, idle, errorRate, queueSize',
    bad: [...LIMITS, [{ every: '2h' }, 'every'], [{ every: 10 }, 'every']],
  },
  {
    path: 'job()',
    give: (options: object) => hf.job({ name: name(), run, ...options }),
    code: 'HF_BAD_JOB',
    typo: ['shedule', 'schedule'],
    fields: 'name, input, output, queue, priority, retry, timeout, unique, run, batch, schedule',
    bad: [
      [{ priority: null }, 'priority'],
      [{ timeout: '5 minutes' }, 'timeout'],
      [{ unique: 'key' }, 'unique'],
      [{ run: 5 }, 'run'],
      [{ retry: 3 }, 'retry'],
    ],
  },
  {
    path: 'job().retry',
    give: (retry) => hf.job({ name: name(), run, retry }),
    typo: ['atempts', 'attempts'],
    fields: RETRY,
    bad: BAD_RETRY,
  },
  {
    path: 'batchJob().batch',
    give: (batch) => hf.batchJob({ name: name(), run, batch }),
    code: 'HF_BAD_JOB',
    typo: ['sise', 'size'],
    fields: 'size, fill, wait',
    bad: [
      [{ size: 'large' }, 'size'],
      [{ size: 1_001 }, 'size'],
      [{ size: 5, fill: 6 }, 'fill'],
      [{ wait: -1 }, 'wait'],
    ],
  },
  {
    path: 'batchJob().batch.size',
    give: (size) => hf.batchJob({ name: name(), run, batch: { size } }),
    code: 'HF_BAD_JOB',
    typo: ['mx', 'max'],
    fields: 'min, max, start, shrinkAbove, growBelow, over',
    bad: [
      [{ min: '5' }, 'min'],
      [{ min: 10, max: 5 }, 'min'],
      [{ shrinkAbove: 0 }, 'shrinkAbove'],
      [{ over: 1.5 }, 'over'],
    ],
  },
  {
    path: 'contract()',
    give: (options: object) => hf.contract({ name: name(), ...options }),
    code: 'HF_BAD_JOB',
    typo: ['outptu', 'output'],
    fields: 'name, input, output, queue, priority, retry, timeout, unique, run, batch, schedule',
    bad: [[{ timeout: 0 }, 'timeout']],
  },
  {
    path: 'subscribe()',
    give: (options: object) => hf.subscribe({ name: name(), to: 'a', run, ...options }),
    code: 'HF_BAD_JOB',
    typo: ['timout', 'timeout'],
    fields: 'name, to, queue, priority, retry, timeout, run, on',
    bad: [
      [{ priority: 10 }, 'priority'],
      [{ retry: { factor: '2' } }, 'retry.factor'],
    ],
  },
  {
    path: 'job().schedule',
    give: (schedule: object) => hf.job({ name: name(), run, schedule: { every: '1m', ...schedule } }),
    code: 'HF_BAD_SCHEDULE',
    typo: ['catchup', 'catchUp'],
    fields: SCHEDULE,
    bad: [[{ overlap: 'never' }, 'overlap']],
  },
]

const JOBS: readonly Row[] = [
  {
    path: 'enqueue()',
    give: (options) => job.enqueue(undefined, options),
    typo: ['prority', 'priority'],
    fields: 'queue, priority, in, at, unique, tags, retry, timeout, expiresIn, correlationId, metadata, tx',
    bad: [...ENQUEUE, [{ unique: 'key' }, 'unique']],
  },
  {
    path: 'enqueue().retry',
    give: (retry) => job.enqueue(undefined, { retry }),
    typo: ['maxDely', 'maxDelay'],
    fields: RETRY,
    bad: BAD_RETRY,
  },
  {
    path: 'enqueue().unique',
    give: (unique) => job.enqueue(undefined, { unique }),
    typo: ['onconflict', 'onConflict'],
    fields: UNIQUE,
    bad: BAD_UNIQUE,
  },
  {
    path: 'unique()',
    give: (unique) => hf.job({ name: name(), run, unique: () => unique }).enqueue(),
    typo: ['kye', 'key'],
    fields: UNIQUE,
    bad: BAD_UNIQUE,
  },
  {
    path: 'enqueueMany()',
    give: (options) => job.enqueueMany([], options),
    typo: ['tag', 'tags'],
    fields: 'queue, priority, in, at, unique, tags, retry, timeout, expiresIn, correlationId, metadata, tx',
    bad: ENQUEUE,
  },
  {
    path: 'hf.enqueueMany()',
    give: (options) => hf.enqueueMany([], options),
    typo: ['txx', 'tx'],
    fields: 'tx',
    bad: [],
  },
  {
    path: 'edit()',
    give: (options) => job.edit('0', options),
    typo: ['inptu', 'input'],
    fields: 'input, priority, in, at',
    bad: [],
  },
  {
    path: 'result()',
    give: async (options) => (await job.enqueue()).result(options),
    typo: ['timout', 'timeout'],
    fields: 'signal, timeout',
    bad: [
      [{ timeout: 0 }, 'timeout'],
      [{ signal: {} }, 'signal'],
    ],
  },
  {
    path: 'watch()',
    give: async (options) => (await job.enqueue()).watch(options),
    typo: ['signl', 'signal'],
    fields: 'signal',
    bad: [[{ signal: 5 }, 'signal']],
  },
  {
    path: 'schedule()',
    give: (options: object) => job.schedule('id', { every: '1m', ...options }),
    code: 'HF_BAD_SCHEDULE',
    typo: ['evry', 'every'],
    fields: SCHEDULE,
    bad: [
      [{ every: 'often' }, 'every'],
      [{ every: 10 }, 'every'],
      [{ every: undefined, cron: 5 }, 'cron'],
      [{ every: undefined, cron: '0 0 30 2 *' }, 'cron'],
      [{ every: undefined, cron: '0 0 * * *', tz: 'Mars' }, 'tz'],
      [{ every: undefined, cron: '0 0 * * *', dst: 'never' }, 'dst'],
      [{ catchUp: 'none' }, 'catchUp'],
      [{ catchUpLimit: 0 }, 'catchUpLimit'],
      [{ catchUpLimit: 100_001 }, 'catchUpLimit'],
      [{ overlap: true }, 'overlap'],
      [{ jitter: -1 }, 'jitter'],
    ],
  },
  {
    path: 'schedule().options',
    give: (options) => job.schedule('id', { every: '1m', options }),
    typo: ['tag', 'tags'],
    fields: 'queue, priority, tags, retry, timeout, expiresIn, correlationId, metadata',
    bad: NEW_JOB,
  },
  {
    path: 'publish()',
    give: (options) => event.publish(undefined, options),
    typo: ['tag', 'tags'],
    fields: 'tags, correlationId, metadata, tx',
    bad: ENVELOPE,
  },
  {
    path: 'publishMany()',
    give: (options) => event.publishMany([], options),
    typo: ['metdata', 'metadata'],
    fields: 'tags, correlationId, metadata, tx',
    bad: ENVELOPE,
  },
]

const WORK: readonly Row[] = [
  {
    path: 'work()',
    give: (options) => hf.work(options),
    typo: ['concurency', 'concurrency'],
    fields: 'name, jobs, queues, concurrency, batchSize, poll, lease, grace, health, signal',
    bad: [
      [{ name: 'two words' }, 'name'],
      [{ jobs: 'x' }, 'jobs'],
      [{ jobs: [undefined] }, 'jobs[0]'],
      [{ queues: 5 }, 'queues'],
      [{ queues: { default: 0 } }, 'queues.default'],
      [{ concurrency: 'many' }, 'concurrency'],
      [{ concurrency: 10_001 }, 'concurrency'],
      [{ batchSize: 1_001 }, 'batchSize'],
      [{ poll: 0 }, 'poll'],
      [{ lease: 'soon' }, 'lease'],
      [{ lease: '50ms' }, 'lease'],
      [{ grace: -1 }, 'grace'],
      [{ health: null }, 'health'],
      [{ signal: 5 }, 'signal'],
    ],
  },
  {
    path: 'work().health',
    give: (health) => hf.work({ health }),
    typo: ['queuesize', 'queueSize'],
    fields: 'idle, errorRate, queueSize',
    bad: LIMITS,
  },
  {
    path: 'worker.stop()',
    give: async (options) => {
      await using worker = await hf.work()
      await worker.stop(options)
    },
    typo: ['drian', 'drain'],
    fields: 'drain',
    bad: [[{ drain: 'a while' }, 'drain']],
  },
  {
    path: 'workers.stop()',
    give: (options) => hf.workers.stop(options),
    typo: ['drian', 'drain'],
    fields: 'drain',
    bad: [[{ drain: -1 }, 'drain']],
  },
  {
    path: 'health.check()',
    give: (options) => hf.health.check(name(), () => true, options),
    typo: ['timout', 'timeout'],
    fields: 'timeout',
    bad: [[{ timeout: '6m' }, 'timeout']],
  },
  {
    path: 'send()',
    give: (options) => hf.queue('default').send({}, options),
    typo: ['nam', 'name'],
    fields: 'priority, in, at, unique, tags, retry, timeout, expiresIn, correlationId, metadata, tx, name',
    bad: [...ENQUEUE, [{ unique: {} }, 'unique.key']],
  },
  {
    path: 'get()',
    give: (options) => hf.queue('default').get(options),
    typo: ['waitMs', 'wait'],
    fields: 'limit, wait, signal',
    bad: [
      [{ limit: 0 }, 'limit'],
      [{ wait: 'long' }, 'wait'],
      [{ signal: true }, 'signal'],
    ],
  },
  {
    path: 'nack()',
    give: async (options) => {
      const queue = hf.queue('default')
      await queue.send({})
      const [message] = await queue.get()
      await message?.nack(undefined, options)
    },
    typo: ['retyIn', 'retryIn'],
    fields: 'retryIn',
    bad: [[{ retryIn: 'soon' }, 'retryIn']],
  },
]

const DEAD_LETTERS: readonly Row[] = [
  {
    path: 'deadLetters.list()',
    give: (options) => hf.deadLetters.list(options),
    code: 'HF_BAD_FILTER',
    typo: ['queus', 'queues'],
    fields: `${FILTER_FIELDS}, limit, after`,
    bad: [
      ...TIMES,
      [{ ids: 'x' }, 'ids'],
      [{ tags: [5] }, 'tags[0]'],
      [{ idPrefix: 'X' }, 'idPrefix'],
      [{ limit: 1_001 }, 'limit'],
    ],
  },
  {
    path: 'deadLetters.groups()',
    give: (options) => hf.deadLetters.groups(options),
    code: 'HF_BAD_FILTER',
    typo: ['job', 'jobs'],
    fields: FILTER_FIELDS,
    bad: TIMES,
  },
  {
    path: 'deadLetters.replay(filter)',
    give: (filter) => hf.deadLetters.replay(filter),
    code: 'HF_BAD_FILTER',
    typo: ['fingerprint', 'fingerprints'],
    fields: FILTER_FIELDS,
    bad: TIMES,
  },
  {
    path: 'deadLetters.replay()',
    give: (options) => hf.deadLetters.replay('0', options),
    typo: ['onprogress', 'onProgress'],
    fields: 'onProgress, signal, from, input',
    bad: BULK,
  },
  {
    path: 'deadLetters.discard()',
    give: (options) => hf.deadLetters.discard('0', options),
    typo: ['form', 'from'],
    fields: 'onProgress, signal, from',
    bad: BULK,
  },
  {
    path: 'deadLetters.handle()',
    give: (options) => hf.deadLetters.handle(run, options),
    typo: ['timout', 'timeout'],
    fields: 'queue, retry, timeout, priority',
    bad: [
      [{ timeout: 0 }, 'timeout'],
      [{ retry: { attempts: 0 } }, 'retry.attempts'],
    ],
  },
]

const STORES: readonly Row[] = [
  {
    path: 'memoryStore()',
    give: (options) => memoryStore(options),
    typo: ['maxfinished', 'maxFinished'],
    fields: 'clock, random, maxFinished',
    bad: [
      [{ maxFinished: 'all' }, 'maxFinished'],
      [{ maxFinished: -1 }, 'maxFinished'],
      [{ clock: {} }, 'clock'],
      [{ random: 4 }, 'random'],
    ],
  },
  {
    path: 'sqliteStore()',
    give: (options) => sqliteStore(options),
    typo: ['direktory', 'directory'],
    fields: 'directory, database, prefix, durability, onNotice',
    bad: [
      ...NOTICE,
      [{ directory: 7 }, 'directory'],
      [{ durability: 'off' }, 'durability'],
      [{ prefix: '1' }, 'prefix'],
    ],
  },
  {
    path: 'postgresStore()',
    give: (options: object) => postgresStore({ url: 'postgres://host/db', ...options }),
    typo: ['conections', 'connections'],
    fields:
      'url, pool, connections, commitConnections, queryTimeoutMs, prepare, onNotice, migrate, schema, prefix',
    bad: [
      ...NOTICE,
      [{ url: new URL('postgres://me:secret@host/db') }, 'url'],
      [{ pool: 'postgres://me:secret@host/db' }, 'pool'],
      [{ connections: 0 }, 'connections'],
      [{ commitConnections: '5' }, 'commitConnections'],
      [{ queryTimeoutMs: Infinity }, 'queryTimeoutMs'],
      [{ prepare: 'yes' }, 'prepare'],
      [{ migrate: 1 }, 'migrate'],
      [{ schema: 'a b' }, 'schema'],
      [{ prefix: 5 }, 'prefix'],
    ],
  },
  {
    path: 'postgresSchema()',
    give: (options) => postgresSchema(options),
    typo: ['shema', 'schema'],
    fields: 'schema, prefix',
    bad: [[{ schema: '' }, 'schema']],
  },
  {
    path: 'redisStore()',
    give: (options: object) => redisStore({ url: 'redis://host', ...options }),
    typo: ['prefixx', 'prefix'],
    fields: 'url, connection, prefix, commandTimeoutMs, allowEviction, onNotice',
    bad: [
      ...NOTICE,
      [{ url: new URL('redis://:secret@host') }, 'url'],
      [{ connection: 'redis://:secret@host' }, 'connection'],
      [{ prefix: 'a{b}' }, 'prefix'],
      [{ commandTimeoutMs: 0 }, 'commandTimeoutMs'],
      [{ allowEviction: 'yes' }, 'allowEviction'],
    ],
  },
  {
    path: 'testQueue()',
    give: (options) => testQueue(inTest, options),
    typo: ['delivr', 'deliver'],
    fields: 'start, seed, deliver, tx',
    bad: [
      [{ start: 'now' }, 'start'],
      [{ seed: 'x' }, 'seed'],
      [{ deliver: 'thrice' }, 'deliver'],
    ],
  },
  {
    path: 'drain()',
    give: async (options) => {
      await using t = await testQueue(inTest)
      await t.drain(options)
    },
    typo: ['untill', 'until'],
    fields: 'until',
    bad: [[{ until: '1h' }, 'until']],
  },
]

const refusal = async (row: Row, options: unknown): Promise<Error> =>
  (await thrownBy((async () => row.give(options as never))())) as Error

describe.each([...DEFINITIONS, ...JOBS, ...WORK, ...DEAD_LETTERS, ...STORES])(
  'the options of $path',
  (row) => {
    const { path, code = 'HF_BAD_OPTION', typo, fields, bad } = row
    const [written, meant] = typo

    test('refuse an unknown one, with the nearest and all others', async () => {
      expect(await refusal(row, { [written]: 5 })).toMatchObject({
        code,
        message: expect.stringContaining(`Unknown option \`${path}.${written}\`.`) as string,
        hint: `Did you mean \`${meant}\`? Options: ${fields}.`,
      })
      expect(await refusal(row, { zzzzzzzz: undefined })).toMatchObject({ code, hint: `Options: ${fields}.` })
    })

    test.for(bad)('refuse %o', async ([options, at]) => {
      const error = await refusal(row, options)
      expect(error.message).toMatch(/ (is|are) .+; (it|they) must be .+\.$/)
      expect(error.message).toContain(`\`${path}.${at}\` is `)
      expect(error.message).not.toContain('secret')
      expect(error).toMatchObject({ hint: expect.stringMatching(/^Use .+\.$/) as string })
    })
  },
)

test('a schedule is asked for a number of ticks that it can tell', async () => {
  await job.schedule('hourly', { every: '1h' })
  const schedule = await hf.schedules.get('hourly')
  expect(schedule?.next(2)).toHaveLength(2)
  for (const count of ['5', -1, 1.5, 1_001, null])
    expect(() => schedule?.next(count as number)).toThrow('`next(count)` is ')
})

test('undefined is not given, and null is a value', async () => {
  const options = { timeout: undefined, queues: undefined, logger: false, keep: { dead: undefined } } as const
  await holdfast(options as object).close()
  expect(() => holdfast({ timeout: null as never })).toThrow('`holdfast().timeout` is null')
})
