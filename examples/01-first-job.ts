// The quick start: define a job, start a worker, enqueue, wait for the result.
import { holdfast } from 'holdfast'
import { z } from 'zod'

const hf = holdfast()
const greet = hf.job({
  name: 'greet',
  input: z.object({ name: z.string() }),
  run: ({ input }) => `Hello, ${input.name}!`,
})
await hf.work()
const job = await greet.enqueue({ name: 'Ada' })
console.log(await job.result())
await hf.close()
