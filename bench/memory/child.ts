/** One measurement in a process of its own; prints its result as JSON. The library is the built one. */
import type * as Library from 'holdfast'

// The built code, not the sources: what users run is what is measured.
const { holdfast } = (await import(new URL('../../dist/index.js', import.meta.url).href)) as typeof Library

export type Scenario =
  | { readonly type: 'drain'; readonly jobs: number; readonly concurrency: number; readonly signal: boolean }
  | { readonly type: 'refill'; readonly waiting: number; readonly seconds: number }

export interface DrainResult {
  readonly enqueuePerSecond: number
  readonly drainPerSecond: number
}

export interface RefillResult {
  readonly cpuMicros: number
  readonly jobsPerSecond: number
}

const REFILL_BATCH = 1_000

const scenario = JSON.parse(process.argv[2] ?? '{}') as Scenario
const result = scenario.type === 'drain' ? await drain(scenario) : await refill(scenario)
console.log(JSON.stringify(result))

async function drain({
  jobs,
  concurrency,
  signal,
}: Extract<Scenario, { type: 'drain' }>): Promise<DrainResult> {
  const hf = holdfast({ store: 'memory:', logger: false })
  let aborted = 0
  const job = hf.job({
    name: 'noop',
    run: signal ? (context) => void (aborted += Number(context.signal.aborted)) : () => undefined,
  })
  const beforeEnqueue = performance.now()
  await job.enqueueMany(Array.from({ length: jobs }, () => undefined))
  const enqueuePerSecond = perSecond(jobs, beforeEnqueue)
  const done = countTo(hf, jobs)
  const beforeDrain = performance.now()
  await hf.work({ concurrency })
  await done
  const drainPerSecond = perSecond(jobs, beforeDrain)
  await hf.close()
  return { enqueuePerSecond, drainPerSecond }
}

function countTo(hf: ReturnType<typeof holdfast>, jobs: number): Promise<void> {
  let completed = 0
  return new Promise((resolve) => {
    hf.on('job.completed', () => {
      if (++completed === jobs) resolve()
    })
  })
}

/** Holds the backlog at one level: for each thousand finished, a thousand more. */
async function refill({ waiting, seconds }: Extract<Scenario, { type: 'refill' }>): Promise<RefillResult> {
  const hf = holdfast({ store: 'memory:', logger: false })
  const job = hf.job({ name: 'noop', run: () => undefined })
  const more = Array.from({ length: REFILL_BATCH }, () => undefined)
  for (let enqueued = 0; enqueued < waiting; enqueued += REFILL_BATCH) await job.enqueueMany(more)
  let completed = 0
  hf.on('job.completed', () => {
    if (++completed % REFILL_BATCH === 0) void job.enqueueMany(more)
  })
  const worker = await hf.work({ concurrency: 100 })
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  const before = { completed, cpu: process.cpuUsage(), at: performance.now() }
  await new Promise((resolve) => setTimeout(resolve, seconds * 1_000))
  const { user, system } = process.cpuUsage(before.cpu)
  const finished = completed - before.completed
  const jobsPerSecond = perSecond(finished, before.at)
  await worker.stop()
  await hf.close()
  return { cpuMicros: (user + system) / finished, jobsPerSecond }
}

function perSecond(count: number, sinceMs: number): number {
  return count / ((performance.now() - sinceMs) / 1_000)
}
