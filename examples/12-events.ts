// Holdfast emits events; the log listens to them. Pass a pino logger, or any object with its four methods.
import { holdfast, type PinoLike } from 'holdfast'

const logger: PinoLike = {
  debug: () => undefined, // enqueued, started, progress
  info: () => undefined, // completed, snoozed, cancelled, worker started and stopped
  warn: (_fields, message) => console.log(`log warn:  ${message}`),
  error: (_fields, message) => console.log(`log error: ${message}`),
}
const hf = holdfast({ logger })
const charge = hf.job({
  name: 'charge',
  retry: { attempts: 2, delay: '10ms', jitter: false },
  run: () => {
    throw new Error('card declined')
  },
})

hf.on('job.enqueued', ({ job, queue }) => console.log(`${job} enqueued to ${queue}`))
hf.on('job.started', ({ job, attempt, maxAttempts }) =>
  console.log(`${job} started, ${attempt} of ${maxAttempts}`),
)
hf.on('job.failed', ({ job, kind, final }) => console.log(`${job} failed, ${kind}, final: ${final}`))
const unlisten = hf.on('job.failed', () => {
  unlisten()
  throw new Error('pager is offline') // a listener that fails harms nobody, and is an event of its own
})

await hf.work()
const job = await charge.enqueue()
await job.result().catch(() => undefined)
await hf.close()
