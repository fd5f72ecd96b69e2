// A failed job is retried with growing delays, unless its error says otherwise; a job that fails for good is kept as a
// dead letter. `jitter` shortens delays by up to half at random; it is off here so that the output is always the same.
import { Fatal, holdfast, RetryIn } from 'holdfast'
import { z } from 'zod'

const hf = holdfast({ logger: false })
const fetchPage = hf.job({
  name: 'fetch-page',
  input: z.enum(['slow to wake', 'always broken', 'gone', 'busy', 'not ours']),
  retry: {
    attempts: 3,
    backoff: 'exponential',
    delay: '10ms',
    jitter: false,
    when: (error) => error.message !== 'forbidden',
  },
  run({ input, job }) {
    if (input === 'always broken') throw new Error('status 500')
    if (input === 'gone') throw new Fatal('status 404') // no attempt would help
    if (input === 'not ours') throw new Error('forbidden') // `when` refuses to retry it
    if (input === 'busy' && job.attempt === 1) throw new RetryIn('25ms', 'status 429') // it says when
    if (input === 'slow to wake' && job.attempt < 3) throw new Error('status 503')
    return `ok at attempt ${job.attempt}`
  },
})

hf.on('job.failed', ({ attempt, error, kind, retryInMs }) => {
  const fate = retryInMs === null ? 'dead letter' : `again in ${retryInMs} ms`
  console.log(`  attempt ${attempt} failed: ${error.message} (${kind}), ${fate}`)
})
await hf.work()
for (const page of ['slow to wake', 'busy', 'always broken', 'gone', 'not ours'] as const) {
  console.log(page)
  const job = await fetchPage.enqueue(page)
  const end = await job.result().catch((error: Error) => error.message)
  console.log(`  ${await job.state()}: ${end}`)
}
await hf.close()
