// A batch with an adaptive size: it grows while calls are fast, and shrinks while they are slow.
import { holdfast } from 'holdfast'
import { setTimeout as pass } from 'node:timers/promises'
import { z } from 'zod'

const hf = holdfast({ logger: false })
let msPerJob = 0
const embed = hf.batchJob({
  name: 'embed',
  input: z.number(),
  batch: {
    // By default from 5 to 50, starting at 10; halved if the mean of ten batches is above 5 s, grown by half if it is
    // below 2 s.
    size: { min: 5, max: 20, start: 10, over: 2, growBelow: '50ms', shrinkAbove: '100ms' },
  },
  async run({ jobs }) {
    await pass(jobs.length * msPerJob)
  },
})
hf.on('batch.resized', ({ from, to }) => console.log(`${to} jobs at a time instead of ${from}`))

const done = new Promise<void>((resolve) => {
  let left = 200
  hf.on('job.completed', () => {
    // The model has become slow.
    if (--left === 100) msPerJob = 30
    if (left === 0) resolve()
  })
})
await embed.enqueueMany(Array.from({ length: 200 }, (_, index) => index))
await hf.work({ concurrency: 1 })
await done
await hf.close()
