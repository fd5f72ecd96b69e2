/**
 * Fills a store through the library itself: enqueue and drain with no-op handlers, which claim many at once. Some jobs are
 * claimed a few at a time, some are cancelled, and some report a log. Prints ids as JSON, one for each so many jobs. Runs in a process of its own: `build.ts <index.js of Holdfast> <url> <finished> <waiting>`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type * as Library from 'holdfast'
import { NAMES, QUEUES, RARE, type SampledIds, SIDE_QUEUE, TAG } from './data.ts'
import { drainSmall, openStore } from './store.ts'

/** Enqueued at once, before the worker is given time to catch up. */
const PORTION = 50_000
const BACKLOG = 200_000
const SAMPLE_EVERY = 997
const ONE_DAY_MS = 86_400_000
/** So many of a thousand jobs. */
const DEAD_PER_MILLE = 2
const SCHEDULED_PER_MILLE = 50
const RARE_PER_MILLE = 1
const CANCELLED_PER_MILLE = 10
const LOGGING_PER_MILLE = 10
const SMALL_PER_MILLE = 20
const TAGGED_EVERY = 10
const SMALL_BATCH = 2
const DRAINS_AT_ONCE = 4
const CANCELS_AT_ONCE = 1_000
const IDLE_QUEUE = 'idle'
const ADDED_UP_MS = 60_000

const [build = '', url = '', finishedText, waitingText] = process.argv.slice(2)
const [finished, waiting] = [Number(finishedText), Number(waitingText)]
const { holdfast, Fatal } = (await import(build)) as typeof Library

interface Input {
  readonly number: number
  readonly note: string
}

const input: StandardSchemaV1<Input> = {
  '~standard': { version: 1, vendor: 'bench', validate: (value) => ({ value: value as Input }) },
}
const NOTE = 'x'.repeat(75)

const hf = holdfast({
  store: url,
  logger: false,
  timeout: '2m',
  queues: Object.fromEntries([...QUEUES, SIDE_QUEUE, IDLE_QUEUE].map((queue) => [queue, {}])),
})
const store = await openStore(build, url)
await store.open()
let ran = 0
const jobs = [...NAMES, RARE].map((name) => hf.job({ name, input, run: () => void ran++ }))
const logging = hf.job({
  name: 'logging',
  input,
  run: ({ log }) => {
    ran++
    log.info('Done.')
  },
})
const failing = hf.job({
  name: 'failing',
  input,
  run: ({ input: { number } }) => {
    ran++
    throw new Fatal(`Cause ${'abcde'[number % 5]}`)
  },
})

let enqueued = 0
const ids: Record<keyof SampledIds, string[]> = { finished: [], waiting: [], dead: [], small: [], ended: [] }
await hf.queues()

const worker = await hf.work({ concurrency: 1_000, queues: [...QUEUES] })
const [small, cancelled, logged, dead] = [
  SMALL_PER_MILLE,
  CANCELLED_PER_MILLE,
  LOGGING_PER_MILLE,
  DEAD_PER_MILLE,
].map((share) => Math.ceil((finished * share) / 1_000)) as [number, number, number, number]
const drained = finished - small - cancelled - logged
await enqueue(drained, ids.finished)
sample(ids.ended, 97, (await logging.enqueueMany(inputs(logged), { queue: QUEUES[0] })).ids)
sample(ids.dead, 97, (await failing.enqueueMany(inputs(dead), { queue: QUEUES[0] })).ids)
while (ran < drained + logged + dead) await sleep(10)
await worker.stop()
await cancel()
await drain()
const later = Math.ceil((waiting * SCHEDULED_PER_MILLE) / 1_000)
await enqueue(waiting - later, ids.waiting, true)
await jobs[0]?.enqueueMany(inputs(later), { queue: QUEUES[0], in: ONE_DAY_MS })
await check()
await addUp()
await hf.close()
await store.close()
console.log(JSON.stringify(ids satisfies SampledIds))

/** The upkeep adds up what changed in the counts, as it does beside any worker. */
async function addUp(): Promise<void> {
  const idle = await hf.work({ queues: [IDLE_QUEUE] })
  const untilMs = performance.now() + ADDED_UP_MS
  for (let quick = 0; quick < 5 && performance.now() < untilMs;) {
    await sleep(200)
    const since = performance.now()
    await hf.queues()
    quick = performance.now() - since < 20 ? quick + 1 : 0
  }
  await idle.stop()
}

/** What was meant to be built is there: a bench on other numbers measures something else. */
async function check(): Promise<void> {
  const statuses = await hf.queues()
  const meant = { completed: finished - cancelled, cancelled, dead, ready: waiting - later, scheduled: later }
  for (const [state, count] of Object.entries(meant)) {
    const found = statuses.reduce((sum, { counts }) => sum + counts[state as keyof typeof meant], 0)
    if (found !== count) throw new Error(`${count} jobs should be ${state}, but ${found} are.`)
  }
}

/** Enqueued and claimed in turn, so that the ids of a batch lie close together. */
async function drain(): Promise<void> {
  for (let left = small; left > 0; left -= PORTION) {
    const written = await jobs[0]?.enqueueMany(inputs(Math.min(PORTION, left)), { queue: SIDE_QUEUE })
    sample(ids.small, SAMPLE_EVERY, written?.ids ?? [])
    await Promise.all(
      Array.from({ length: DRAINS_AT_ONCE }, () => drainSmall(store, SIDE_QUEUE, SMALL_BATCH)),
    )
  }
}

async function cancel(): Promise<void> {
  const written = await jobs[1]?.enqueueMany(inputs(cancelled), { queue: SIDE_QUEUE, tags: [TAG] })
  sample(ids.ended, 97, written?.ids ?? [])
  const filter = { queues: [SIDE_QUEUE], states: ['ready' as const] }
  let next: Awaited<ReturnType<typeof store.admin.change>>['next'] = null
  do {
    const action = { type: 'cancel', reason: 'not needed' } as const
    next = (await store.admin.change(filter, action, CANCELS_AT_ONCE, next)).next
  } while (next !== null)
}

/** Spread over queues, names and tags; the rare name stands between the others. */
async function enqueue(count: number, into: string[], stays = false): Promise<void> {
  const until = enqueued + count
  for (let turn = 0; enqueued < until; turn++) {
    const size = Math.min(PORTION, until - enqueued)
    const rare = Math.floor((size * RARE_PER_MILLE) / 1_000)
    const queue = QUEUES[turn % QUEUES.length] ?? ''
    const options = turn % TAGGED_EVERY === 0 ? { queue, tags: [TAG] } : { queue }
    const [job, rareJob] = [jobs[turn % NAMES.length], jobs.at(-1)]
    sample(into, SAMPLE_EVERY, (await job?.enqueueMany(inputs(size - rare), options))?.ids ?? [])
    await rareJob?.enqueueMany(inputs(rare), options)
    enqueued += size
    while (!stays && enqueued - ran > BACKLOG) await sleep(10)
  }
}

function sample(into: string[], every: number, from: readonly string[]): void {
  for (let index = 0; index < from.length; index += every) into.push(from[index] as string)
}

function inputs(count: number): Input[] {
  return Array.from({ length: count }, (_, number) => ({ number, note: NOTE }))
}
