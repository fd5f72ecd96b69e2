// A contract is a job without its handler: the web server imports it and enqueues, without the handler's dependencies.
// The worker implements it; TypeScript holds both to the same input and output.
import { holdfast } from 'holdfast'
import { z } from 'zod'

// contracts.ts, imported by both
const hf = holdfast()
const resize = hf.contract({
  name: 'resize',
  input: z.object({ image: z.string(), width: z.number().default(800) }),
  output: z.object({ url: z.url() }),
})

// web.ts
const job = await resize.enqueue({ image: 'cat.png' })
await hf.work().catch((error: Error) => console.log(error.message))

// worker.ts
resize.implement(({ input }) => ({ url: `https://cdn.example.org/${input.width}/${input.image}` }))
await hf.work()

const { url } = await job.result()
console.log(url)
await hf.close()
