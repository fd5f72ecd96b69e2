// stop() claims nothing more and lets running jobs finish. Jobs that are not done at the deadline are aborted and
// released without using an attempt: the next worker runs them as if nothing had happened.
import { setTimeout as sleep } from 'node:timers/promises'
import { Aborted, holdfast } from 'holdfast'
import { z } from 'zod'

const hf = holdfast()
const disk = { isSlow: true }
const copy = hf.job({
  name: 'copy',
  input: z.object({ file: z.string(), ms: z.number() }),
  async run({ input, signal, job }) {
    console.log(`${input.file}: attempt ${job.attempt}`)
    try {
      await sleep(disk.isSlow ? input.ms : 1, undefined, { signal })
    } catch (error) {
      const reason: unknown = signal.reason
      if (reason instanceof Aborted) console.log(`${input.file}: aborted, ${reason.why}`)
      throw error
    }
    console.log(`${input.file}: copied`)
  },
})

const small = await copy.enqueue({ file: 'small', ms: 50 })
const large = await copy.enqueue({ file: 'large', ms: 60_000 })
const later = await copy.enqueue({ file: 'later', ms: 1 })
const worker = await hf.work({ concurrency: 2 })
for await (const { state } of large.watch()) if (state === 'running') break

console.log('stopping')
await worker.stop({ drain: '250ms' })
console.log(`stopped: ${await small.state()}, ${await large.state()}, ${await later.state()}`)

disk.isSlow = false
await hf.work({ concurrency: 1 })
await later.result()
await hf.close()
