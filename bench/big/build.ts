/**
 * Fills a store through the library itself: enqueue and drain with no-op handlers. Prints ids as JSON, one for each so
 * many jobs. Runs in a process of its own: `build.ts <index.js of Holdfast> <url> <finished> <waiting>`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type * as Library from 'holdfast'
import { NAMES, QUEUES, RARE, type SampledIds, TAG } from './data.ts'

/** Enqueued at once, before the worker is given time to catch up. */
const PORTION = 50_000
const BACKLOG = 200_000
const SAMPLE_EVERY = 997
const ONE_DAY_MS = 86_400_000
/** So many of a thousand jobs. */
const DEAD_PER_MILLE = 2
const SCHEDULED_PER_MILLE = 50
const RARE_PER_MILLE = 1
const TAGGED_EVERY = 10

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
  queues: Object.fromEntries(QUEUES.map((queue) => [queue, {}])),
})
let ran = 0
const jobs = [...NAMES, RARE].map((name) => hf.job({ name, input, run: () => void ran++ }))
const failing = hf.job({
  name: 'failing',
  input,
  run: ({ input: { number } }) => {
    ran++
    throw new Fatal(`Cause ${'abcde'[number % 5]}`)
  },
})

let enqueued = 0
const ids: Record<keyof SampledIds, string[]> = { finished: [], waiting: [], dead: [] }
await hf.queues()

const worker = await hf.work({ concurrency: 1_000 })
await enqueue(finished, ids.finished)
const dead = Math.ceil((finished * DEAD_PER_MILLE) / 1_000)
sample(ids.dead, 97, (await failing.enqueueMany(inputs(dead), { queue: QUEUES[0] })).ids)
while (ran < finished + dead) await sleep(10)
await worker.stop()
const later = Math.ceil((waiting * SCHEDULED_PER_MILLE) / 1_000)
await enqueue(waiting - later, ids.waiting, true)
await jobs[0]?.enqueueMany(inputs(later), { queue: QUEUES[0], in: ONE_DAY_MS })
await check()
await hf.close()
console.log(JSON.stringify(ids satisfies SampledIds))

/** What was meant to be built is there: a bench on other numbers measures something else. */
async function check(): Promise<void> {
  const statuses = await hf.queues()
  const meant = { completed: finished, dead, ready: waiting - later, scheduled: later }
  for (const [state, count] of Object.entries(meant)) {
    const found = statuses.reduce((sum, { counts }) => sum + counts[state as keyof typeof meant], 0)
    if (found !== count) throw new Error(`${count} jobs should be ${state}, but ${found} are.`)
  }
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
