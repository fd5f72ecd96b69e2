// A chain of responsibility: processors run in order until one handles the job.
import { chain, holdfast } from 'holdfast'
import { z } from 'zod'

const hf = holdfast({ logger: false })
const webhook = hf.job({
  name: 'webhook',
  input: z.object({ type: z.string(), number: z.number() }),
  run: chain([
    {
      name: 'push',
      run: ({ input }, pass) => (input.type === 'push' ? `built push ${input.number}` : pass()),
    },
    {
      name: 'pull request',
      run: ({ input }, pass) =>
        input.type.startsWith('pull_request') ? `analysed pull request ${input.number}` : pass(),
    },
  ]),
})
await hf.work()

console.log(await (await webhook.enqueue({ type: 'pull_request.opened', number: 7 })).result())
console.log(await (await webhook.enqueue({ type: 'push', number: 8 })).result())

// If all pass, the job is a dead letter at once, and its error names the processors.
const unknown = await webhook.enqueue({ type: 'star', number: 9 })
const { cause } = (await unknown.result().catch((error: unknown) => error)) as Error
console.log((cause as Error).message)
await hf.close()
