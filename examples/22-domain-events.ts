// Something happened: each subscriber gets its own job, which is retried and fails on its own.
import { holdfast } from 'holdfast'
import { z } from 'zod'

const hf = holdfast({ logger: false })
const merged = hf.event('pull_request.merged', z.object({ repo: z.string(), number: z.int() }))
const closed = hf.event('pull_request.closed', z.object({ number: z.int(), reason: z.string() }))

let tries = 0
hf.subscribe({
  name: 'announce',
  to: merged,
  retry: { attempts: 3, delay: 10 },
  run({ input: { data } }) {
    if (++tries === 1) throw new Error('the chat is down')
    return `merged ${data.repo}#${data.number}`
  },
})
// A pattern: `*` is one part of a name, `**` at the end one or more. The data can be of any type.
const audit = hf.subscribe({ name: 'audit', to: 'pull_request.*', run: ({ input }) => `noted ${input.name}` })
// Or a handler for each event.
hf.subscribe({
  name: 'statistics',
  to: [merged, closed],
  on: {
    'pull_request.merged': ({ input }) => `counted ${input.data.repo}`,
    'pull_request.closed': ({ input }) => `counted ${input.data.reason}`,
  },
})

const lines: string[] = []
const ended = new Promise<void>((resolve) => {
  hf.on('job.failed', ({ job, error }) => void lines.push(`${job} failed: ${error.message}`))
  hf.on('job.completed', ({ job }) => {
    if (lines.push(`${job} completed`) === 6) resolve()
  })
})
// Subscriptions are stored when a worker starts; from then on any process may publish.
await hf.work()

const { subscribers } = await merged.publish({ repo: 'holdfast', number: 7 })
console.log('merged reached', subscribers.join(', '))
await closed.publish({ number: 8, reason: 'stale' })
await ended
console.log(lines.toSorted().join('\n'))

await audit.unsubscribe()
const after = await closed.publishMany([
  { number: 9, reason: 'stale' },
  { number: 10, reason: 'spam' },
])
console.log(`${after.published} events became ${after.jobs} jobs`)

hf.on('event.unsubscribed', ({ event }) => console.log(`no subscriber for ${event}`))
await hf.event('repository.starred').publish()
try {
  hf.subscribe({ name: 'typo', to: 'pull_request.**.late', run: () => undefined })
} catch (error) {
  console.log((error as Error).message)
}
await hf.close()
