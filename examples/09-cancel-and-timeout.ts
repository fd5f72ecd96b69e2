// A handler's signal aborts when the job is cancelled, at its timeout and when the worker stops; the reason says which.
// Pass the signal on to anything that waits: fetch, timers, database drivers.
import { setTimeout as sleep } from 'node:timers/promises'
import { Aborted, holdfast } from 'holdfast'

const hf = holdfast({ logger: false })
const crawl = hf.job({
  name: 'crawl',
  timeout: '5m',
  retry: { attempts: 1 },
  async run({ signal }) {
    try {
      await sleep(60_000, undefined, { signal })
    } catch (error) {
      const reason: unknown = signal.reason
      if (reason instanceof Aborted) console.log(`handler: ${reason.why}`)
      throw error
    }
  },
})
const tell = (error: Error): void => console.log(`result: ${error.message}`)

// Waiting: it never runs.
const waiting = await crawl.enqueue()
console.log(`waiting: ${await waiting.cancel('typed the wrong address')}`)
await waiting.result().catch(tell)

await hf.work()
// Running: its signal aborts, and it is cancelled once the handler returns.
const running = await crawl.enqueue()
for await (const { state } of running.watch()) {
  if (state === 'running') console.log(`running: ${await running.cancel('the site asked us to')}`)
}
await running.result().catch(tell)
console.log(`ended: ${await running.cancel('once more')}`)

// There is always a timeout; this job gets a shorter one.
const slow = await crawl.enqueue(undefined, { timeout: '30ms' })
await slow.result().catch(tell)
await hf.close()
