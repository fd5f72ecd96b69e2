/** One measurement in a process of its own; prints its result as JSON. The library is the built one. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type * as Library from 'holdfast'

// The built code, not the sources: what users run is what is measured.
const { holdfast, Fatal } = (await import(
  new URL('../../dist/index.js', import.meta.url).href
)) as typeof Library

export type Way = 'single' | 'batch' | 'many' | 'publish' | 'replay'

export interface Measured {
  readonly perSecond: number
  /** Of the process, at the most, beyond what it had before. */
  readonly moreMb: number
}

type Hf = ReturnType<typeof holdfast>

/** What each job is given, and each event. */
interface Order {
  readonly order: number
  readonly note: string
}

/** Makes it 100 bytes, as in the other benches. */
const NOTE = 'x'.repeat(75)

/** Takes it as it is: schemas are not what is measured. */
const input: StandardSchemaV1<Order> = {
  '~standard': { version: 1, vendor: 'bench', validate: (value) => ({ value: value as Order }) },
}
const SUBSCRIBERS = 10
const WAYS: Readonly<Record<Way, (hf: Hf, jobs: number) => Promise<Measured>>> = {
  single: (hf, jobs) => drain(hf, hf.job({ name: 'noop', input, run: () => undefined }), jobs),
  batch: (hf, jobs) =>
    drain(hf, hf.batchJob({ name: 'noop', input, batch: { size: 100 }, run: () => undefined }), jobs),
  async many(hf, jobs) {
    const job = hf.job({ name: 'noop', input, run: () => undefined })
    return timed(jobs, () => job.enqueueMany(inputs(jobs)))
  },
  async publish(hf, jobs) {
    const event = hf.event('order.paid', input)
    for (let one = 0; one < SUBSCRIBERS; one++)
      await hf.subscribe({ name: `subscriber-${one}`, to: event, run: () => undefined }).subscribe()
    return timed(jobs, () => event.publishMany(inputs(jobs / SUBSCRIBERS)))
  },
  async replay(hf, jobs) {
    const job = hf.job({ name: 'noop', input, run: () => Promise.reject(new Fatal('no')) })
    await job.enqueueMany(inputs(jobs))
    const ended = countTo(hf, 'job.failed', jobs)
    const worker = await hf.work({ concurrency: 100 })
    await ended
    await worker.stop()
    let told = 0
    const measured = await timed(jobs, async () => {
      const { changed } = await hf.deadLetters.replay({ all: true }, { onProgress: () => void told++ })
      if (changed !== jobs) throw new Error(`${changed} of ${jobs} were replayed`)
    })
    if (told < jobs / 1_000) throw new Error(`its progress was told ${told} times`)
    return measured
  },
}

const [way, url, jobs] = process.argv.slice(2)
const hf = holdfast({ store: url ?? '', logger: false, timeout: '2m' })
// Opening a store is not what is measured.
await hf.queues()
const measured = await WAYS[way as Way](hf, Number(jobs))
console.log(JSON.stringify(measured))
await hf.close()

async function drain(
  on: Hf,
  job: { enqueueMany(all: Order[]): Promise<unknown> },
  count: number,
): Promise<Measured> {
  await job.enqueueMany(inputs(count))
  const done = countTo(on, 'job.completed', count)
  return timed(count, async () => {
    await on.work({ concurrency: 100 })
    await done
  })
}

function inputs(count: number): Order[] {
  return Array.from({ length: count }, (_, order) => ({ order, note: NOTE }))
}

function countTo(on: Hf, event: 'job.completed' | 'job.failed', count: number): Promise<void> {
  let seen = 0
  return new Promise((resolve) => {
    on.on(event, () => {
      if (++seen === count) resolve()
    })
  })
}

async function timed(count: number, work: () => Promise<unknown>): Promise<Measured> {
  globalThis.gc?.()
  const before = process.memoryUsage().rss
  let most = before
  const looking = setInterval(() => (most = Math.max(most, process.memoryUsage().rss)), 20)
  const since = performance.now()
  await work()
  const perSecond = count / ((performance.now() - since) / 1_000)
  clearInterval(looking)
  return { perSecond, moreMb: (Math.max(most, process.memoryUsage().rss) - before) / 2 ** 20 }
}
