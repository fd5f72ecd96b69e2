/**
 * What must and what must not compile against the public surface. Nothing here runs: `tsc` is the test, and an
 * `@ts-expect-error` that expects too much fails it like a type that allows too little.
 */
import { type } from 'arktype'
import {
  DependencyDown,
  Fatal,
  holdfast,
  RetryIn,
  type AnyJob,
  type Events,
  type FailureKind,
  type Handle,
  type Job,
  type JobState,
  type JobUpdate,
  type Message,
  type ReceivedEvent,
  type Snooze,
} from 'holdfast'
import { testQueue } from 'holdfast/testing'
import * as v from 'valibot'
import { z } from 'zod'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const same = <A, B>(is: Same<A, B>): void => void is

// ── the queues are known by name, the context by what the middleware adds ────────────────────────────────────────

const base = holdfast({
  store: process.env['HOLDFAST_STORE'] ?? 'memory:',
  queues: { default: {}, mail: { aging: '30s' }, slow: { aging: 'strict' } },
  keep: { completed: '2h', maxDead: 10_000 },
  timeout: '5s',
  logger: false,
})
const users = { find: async (id: string) => ({ id, email: 'a@b.c', createdAt: new Date() }) }
const hf = base.use(async ({ next }) => next({ db: { users } }))
const traced = hf.use(async ({ ctx, job, signal, next }) => {
  same<typeof ctx.db, { users: typeof users }>(true)
  same<typeof job.attempt, number>(true)
  same<typeof signal, AbortSignal>(true)
  return next({ traceId: job.correlationId })
})
const quiet = hf.use(({ next }) => next())

// ── jobs: the enqueue sees the schema's input, the handler its output ────────────────────────────────────────────

export const sendWelcome = hf.job({
  name: 'send-welcome',
  queue: 'mail',
  priority: 'high',
  retry: { attempts: 8, backoff: 'exponential', delay: '10s', maxDelay: '1h', jitter: 0.3, crashes: 1 },
  timeout: '30s',
  input: z.object({
    userId: z.string(),
    plan: z.enum(['free', 'pro']).default('free'),
    at: z.coerce.date<string>().optional(),
  }),
  unique: (input) => {
    same<typeof input.plan, 'free' | 'pro' | undefined>(true)
    return { key: input.userId, for: '10m' }
  },
  async run({ input, ctx, signal, progress, log, job, fence, snooze }) {
    same<typeof input.plan, 'free' | 'pro'>(true)
    same<typeof input.at, Date | undefined>(true)
    same<typeof fence, bigint>(true)
    signal.throwIfAborted()
    const user = await ctx.db.users.find(input.userId)
    same<typeof user.createdAt, Date>(true)
    if (user.email === '') throw new Fatal('no address', { cause: user })
    if (job.attempt > 3) throw new RetryIn('5m')
    if (job.crashes > 0) throw new DependencyDown('smtp', { retryAfter: '1m' })
    progress(1, 3, 'sent')
    log.info('sent', { to: user.id })
    if (input.plan === 'free') return snooze('1h')
    return { messageId: 'm1', sentAt: new Date() }
  },
})
export const countRows = hf.job({
  name: 'count-rows',
  input: v.object({ table: v.string() }),
  run: async ({ input }) => ({ rows: input.table.length, when: new Date() }),
})
export const resize = hf.job({
  name: 'resize',
  input: type({ url: 'string', 'width?': 'number' }),
  run: async ({ input }) => input.width ?? 100,
})
export const nightly = hf.job({
  name: 'nightly',
  run: async ({ input }) => {
    same<typeof input, undefined>(true)
  },
})
export const anything = hf.job({ name: 'anything', input: z.unknown(), run: ({ input }) => typeof input })
const inTrace = traced.job({ name: 'in-trace', run: ({ ctx }) => ctx.traceId + ctx.db.users.find.name })
const inQuiet = quiet.job({ name: 'in-quiet', run: ({ ctx }) => ctx.db.users.find('x') })

same<typeof sendWelcome.name, 'send-welcome'>(true)

export async function enqueueing(): Promise<void> {
  const handle = await sendWelcome.enqueue({ userId: 'u1' }, { in: '5m', tags: ['signup'], queue: 'default' })
  same<typeof handle, Handle<{ messageId: string; sentAt: string }>>(true)
  same<Awaited<ReturnType<typeof handle.result>>, { messageId: string; sentAt: string }>(true)
  same<Awaited<ReturnType<typeof handle.state>>, JobState>(true)
  for await (const update of handle.watch()) same<typeof update, JobUpdate>(true)
  same<
    Awaited<ReturnType<Awaited<ReturnType<typeof countRows.enqueue>>['result']>>,
    { rows: number; when: string }
  >(true)
  same<Awaited<ReturnType<Awaited<ReturnType<typeof resize.enqueue>>['result']>>, number>(true)

  await nightly.enqueue()
  await nightly.enqueue(undefined, { priority: 1, at: new Date(0) })
  await anything.enqueue({ whatever: [1, 'two'] }, { priority: 'low' })
  await anything.enqueue()
  await inTrace.enqueue()
  await inQuiet.enqueue()
  const many = await resize.enqueueMany([{ url: 'a' }, { url: 'b', width: 2 }])
  same<typeof many.ids, readonly string[]>(true)
  const counted = await resize.enqueueMany(
    (function* () {
      yield { url: 'a' }
    })(),
  )
  same<typeof counted, { readonly inserted: number; readonly duplicates: number }>(true)
  const { ids } = await hf.enqueueMany([
    resize.with({ url: 'a' }),
    countRows.with({ table: 't' }),
    nightly.with(),
  ])
  same<typeof ids, readonly string[]>(true)
  const found = await sendWelcome.get('id')
  same<typeof found, Handle<{ messageId: string; sentAt: string }> | null>(true)
}

// ── workers, events, queues by hand ──────────────────────────────────────────────────────────────────────────────

export async function running(): Promise<void> {
  const jobs: readonly AnyJob[] = [sendWelcome, countRows, resize, nightly, renderPdf]
  const worker = await hf.work({ jobs, queues: { mail: 2, default: 1 }, concurrency: 5, lease: '10s' })
  await hf.work({ queues: ['mail'] })
  same<ReturnType<typeof worker.health>['healthy'], boolean>(true)
  await worker.stop({ drain: '30s' })
  await using _ = worker
  const off = hf.on('job.failed', (event) => {
    same<typeof event, Events['job.failed']>(true)
    same<typeof event.error, Error>(true)
    same<typeof event.kind, FailureKind>(true)
    if (event.final) console.error(event.fingerprint, event.retryInMs)
  })
  off()
  await hf.pause('mail')
  await hf.resume('mail')
  const queue = hf.queue('slow')
  await queue.send({ any: 'thing' }, { name: 'note', in: '1m' })
  const [message] = await queue.get({ limit: 10, wait: '20s' })
  same<typeof message, Message | undefined>(true)
  await message?.nack(new Error('no'), { retryIn: '5m' })
  await hf.close()
}

export async function testing(): Promise<void> {
  const t = await testQueue(hf)
  const ran = await t.run(sendWelcome, { userId: 'u' })
  if (ran.state === 'completed') same<typeof ran.result.sentAt, string>(true)
  await t.run(nightly)
  // @ts-expect-error wrong payload
  await t.run(sendWelcome, { userId: 1 })
}

// ── contract and implementation ──────────────────────────────────────────────────────────────────────────────────

export const renderPdf = hf.contract({
  name: 'render-pdf',
  input: z.object({ url: z.url(), copies: z.number().default(1) }),
  output: z.object({ pages: z.number() }),
})
export const renderPdfHere = renderPdf.implement(async ({ input, ctx, job, snooze }) => {
  same<typeof input.copies, number>(true)
  await ctx.db.users.find('x')
  return job.attempt > 1 ? snooze('1m') : { pages: 3 }
})
same<
  typeof renderPdfHere extends Job<
    'render-pdf',
    { url: string; copies?: number | undefined },
    { pages: number }
  >
    ? true
    : false,
  true
>(true)
export const ping = hf.contract({ name: 'ping' })
export const pong = ping.implement(() => undefined)

export async function calling(): Promise<void> {
  const pages = await (await renderPdf.enqueue({ url: 'https://a.b' })).result()
  same<typeof pages, { pages: number }>(true)
  await ping.enqueue()
}

const snoozes = hf.job({ name: 'snoozes', run: ({ snooze }): Snooze => snooze(1_000) })
same<typeof snoozes extends Job<'snoozes', void, never, 'default' | 'mail' | 'slow'> ? true : false, true>(
  true,
)

// ── domain events: named ones are typed, what comes by a pattern is not ──────────────────────────────────────────

const merged = hf.event(
  'pull_request.merged',
  z.object({ repo: z.string(), number: z.int(), at: z.coerce.date<string>().optional() }),
)
const opened = hf.event('pull_request.opened', v.object({ title: v.string() }))
const swept = hf.event('swept')
export const announce = hf.subscribe({
  name: 'announce',
  to: merged,
  queue: 'mail',
  run: ({ input, ctx }) => {
    same<typeof input.name, 'pull_request.merged'>(true)
    same<typeof input.publishedAt, Date>(true)
    same<typeof input.data, { repo: string; number: number; at?: Date | undefined }>(true)
    return ctx.db.users.find.name
  },
})
export const audit = hf.subscribe({
  name: 'audit',
  to: 'pull_request.*',
  run: ({ input }) => {
    same<typeof input, ReceivedEvent<string, unknown>>(true)
  },
})
export const either = hf.subscribe({
  name: 'either',
  to: [merged, opened],
  run: ({ input }) => (input.name === 'pull_request.merged' ? input.data.repo : input.data.title),
})
export const afterSweep = hf.subscribe({
  name: 'after-sweep',
  to: swept,
  run: ({ input }) => same<typeof input.data, undefined>(true),
})
export const triage = hf.subscribe({
  name: 'triage',
  to: [merged, opened],
  on: {
    'pull_request.merged': ({ input, ctx }) => ctx.db.users.find(input.data.repo),
    'pull_request.opened': ({ input }) => same<typeof input.data, { title: string }>(true),
  },
})
export const triageAny = traced.subscribe({
  name: 'triage-any',
  to: 'pull_request.**',
  on: { 'pull_request.closed': ({ input, ctx }) => [ctx.traceId, same<typeof input.data, unknown>(true)] },
})
same<typeof announce extends AnyJob ? true : false, true>(true)

export async function publishing(): Promise<void> {
  const { id, subscribers, jobs } = await merged.publish({ repo: 'r', number: 1 }, { tags: ['x'] })
  same<typeof id, string>(true)
  same<typeof subscribers, readonly string[]>(true)
  await announce.get(jobs[0] ?? '')
  await swept.publish()
  await merged.publishMany([{ repo: 'r', number: 1, at: '2030-01-01T00:00:00Z' }])
  await announce.subscribe()
  same<Awaited<ReturnType<typeof announce.unsubscribe>>, boolean>(true)
  await announce.enqueue({ id, name: 'pull_request.merged', at: 'now', data: { repo: 'r', number: 1 } })
  await hf.work({ jobs: [announce, audit, triage] })
}

// ── what must not compile ────────────────────────────────────────────────────────────────────────────────────────

export async function mistakes(): Promise<void> {
  // @ts-expect-error wrong payload type
  await sendWelcome.enqueue({ userId: 1 })
  // @ts-expect-error a field that the schema does not have
  await sendWelcome.enqueue({ userId: 'u', plann: 'pro' })
  // @ts-expect-error the handler's type instead of the enqueue's: a Date is not JSON
  await sendWelcome.enqueue({ userId: 'u', at: new Date() })
  // @ts-expect-error missing payload
  await sendWelcome.enqueue()
  // @ts-expect-error payload for a job without input
  await nightly.enqueue({ some: 'thing' })
  // @ts-expect-error valibot: wrong payload
  await countRows.enqueue({ table: 5 })
  // @ts-expect-error arktype: wrong payload
  await resize.enqueue({ url: 'a', width: 'wide' })
  // @ts-expect-error unknown queue name
  await sendWelcome.enqueue({ userId: 'u' }, { queue: 'mial' })
  // @ts-expect-error bad duration
  await sendWelcome.enqueue({ userId: 'u' }, { in: '5 minutes' })
  // @ts-expect-error bad priority
  await sendWelcome.enqueue({ userId: 'u' }, { priority: 'highest' })
  // @ts-expect-error priorities end at 9
  await sendWelcome.enqueue({ userId: 'u' }, { priority: 10 })
  // @ts-expect-error an option that does not exist
  await sendWelcome.enqueue({ userId: 'u' }, { delay: '5m' })
  // @ts-expect-error functions cannot be stored with a job
  await sendWelcome.enqueue({ userId: 'u' }, { retry: { backoff: () => 1 } })
  // @ts-expect-error wrong payload among many
  await resize.enqueueMany([{ url: 'a' }, { url: 1 }])
  // @ts-expect-error wrong payload for a later enqueue
  resize.with({ url: 1 })
  // @ts-expect-error not an item
  await hf.enqueueMany([{ url: 'a' }])
  // @ts-expect-error unknown queue of a worker
  await hf.work({ queues: ['mial'] })
  // @ts-expect-error unknown queue among weights
  await hf.work({ queues: { mial: 2 } })
  hf.workers.define('mail', { queues: { mail: 2 }, grace: '5s', health: { idle: '1h', errorRate: 0.2 } })
  await hf.workers.stop('mail', { drain: '1s' })
  const remove = hf.health.check('db', async ({ signal }) => users.find(String(signal.aborted)))
  same<typeof remove, () => void>(true)
  // @ts-expect-error unknown queue of a worker that is defined
  hf.workers.define('mail', { queues: ['mial'] })
  // @ts-expect-error its name stands in front
  hf.workers.define('mail', { name: 'mail' })
  // @ts-expect-error not a duration
  hf.health.check('db', () => true, { timeout: 'soon' })
  // @ts-expect-error unknown queue to pause
  await hf.pause('mial')
  // @ts-expect-error unknown queue by hand
  hf.queue('mial')
  // @ts-expect-error unknown event
  hf.on('job.fialed', () => undefined)
  // @ts-expect-error a message goes to its own queue
  await hf.queue('mail').send('x', { queue: 'default' })
}

export async function mistakenEvents(): Promise<void> {
  // @ts-expect-error wrong data
  await merged.publish({ repo: 1, number: 1 })
  // @ts-expect-error missing data
  await merged.publish()
  // @ts-expect-error data of an event that has none
  await swept.publish({ some: 'thing' })
  // @ts-expect-error an option of jobs, not of events
  await merged.publish({ repo: 'r', number: 1 }, { priority: 'high' })
  // @ts-expect-error wrong data among many
  await merged.publishMany([{ repo: 'r' }])
  // @ts-expect-error wrong data of an event by hand
  await announce.enqueue({ id: 'e', name: 'pull_request.merged', at: 'now', data: { repo: 1 } })
}
// @ts-expect-error Date is not JSON
hf.event('bad.date', z.object({ at: z.date() }))
// @ts-expect-error a subscriber needs a handler
hf.subscribe({ name: 'bad-subscriber', to: merged })
// @ts-expect-error whoever publishes cannot compute the key
hf.subscribe({ name: 'bad-unique', to: merged, unique: () => ({ key: 'k' }), run: () => undefined })
// @ts-expect-error a handler is missing
hf.subscribe({ name: 'bad-missing', to: [merged, opened], on: { 'pull_request.merged': () => undefined } })
// @ts-expect-error what comes by a pattern is of no known type
hf.subscribe({ name: 'bad-pattern', to: 'pull_request.*', run: ({ input }) => input.data.repo })
// @ts-expect-error the event has no such field
hf.subscribe({ name: 'bad-data', to: merged, run: ({ input }) => input.data.title })
// @ts-expect-error the context has no such field
hf.subscribe({ name: 'bad-event-ctx', to: merged, run: ({ ctx }) => ctx.redis })

// @ts-expect-error Date is not JSON: told so at the definition
hf.job({ name: 'bad-date', input: z.object({ at: z.date() }), run: async () => undefined })
const deepDate = z.object({ rows: z.array(z.object({ at: z.date() })) })
// @ts-expect-error nor is it deep inside
hf.job({ name: 'bad-deep', input: deepDate, run: () => undefined })
// @ts-expect-error a bigint is not JSON
hf.job({ name: 'bad-bigint', input: z.object({ n: z.bigint() }), run: () => undefined })
// @ts-expect-error nor is a Map
hf.contract({ name: 'bad-map', input: z.map(z.string(), z.string()) })
// @ts-expect-error nor may a contract promise a Date
hf.contract({ name: 'bad-output', output: z.object({ at: z.date() }) })
// @ts-expect-error unknown queue at the definition
hf.job({ name: 'bad-queue', queue: 'nope', run: async () => undefined })
// @ts-expect-error bad duration at the definition
hf.job({ name: 'bad-timeout', timeout: '5 minutes', run: async () => undefined })
// @ts-expect-error a job needs its handler
hf.job({ name: 'bad-run' })
// @ts-expect-error a schema, not a shape
hf.job({ name: 'bad-schema', input: { to: 'string' }, run: () => undefined })
// @ts-expect-error wrong output of an implementation
renderPdf.implement(async () => ({ pages: '3' }))
// @ts-expect-error no output at all
renderPdf.implement(async () => undefined)
// @ts-expect-error a middleware must return what next() gave it
hf.use(async () => ({ db: 1 }))
// @ts-expect-error a middleware that forgets next()
hf.use(async () => undefined)
// @ts-expect-error the context has no such field
hf.job({ name: 'bad-ctx', run: ({ ctx }) => ctx.redis })
// @ts-expect-error what another branch added is not in this one
hf.job({ name: 'bad-branch', run: ({ ctx }) => ctx.traceId })
// @ts-expect-error an option of a queue that does not exist
holdfast({ queues: { mail: { ageing: '1m' } } })
// @ts-expect-error an option that does not exist
holdfast({ stores: 'memory:' })
