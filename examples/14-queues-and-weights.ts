// Several queues, read by weight: while both have jobs, two mails are sent for each report. A queue can be paused for
// all workers; its jobs wait.
import { holdfast, type RunContext } from 'holdfast'
import { z } from 'zod'

const hf = holdfast({ queues: { mail: {}, reports: {} } })
const run = ({ input, job }: RunContext<string, object>): void => console.log(`${job.queue}: ${input}`)
const mail = hf.job({ name: 'mail', queue: 'mail', input: z.string(), run })
const report = hf.job({ name: 'report', queue: 'reports', input: z.string(), run })

async function show(): Promise<void> {
  for (const { queue, paused, counts } of await hf.queues()) {
    console.log(`[${queue}${paused ? ', paused' : ''}: ${counts.ready} ready, ${counts.completed} completed]`)
  }
}

await mail.enqueueMany(['a', 'b', 'c', 'd'])
await report.enqueueMany(['x', 'y'])
const last = await report.enqueue('z')
// One at a time, so that the order shows.
await hf.work({ queues: { mail: 2, reports: 1 }, concurrency: 1, batchSize: 1 })
await last.result()

await hf.pause('mail')
const held = await mail.enqueue('e')
const free = await report.enqueue('w')
await free.result()
await show()
await hf.resume('mail')
await held.result()
await show()
await hf.close()
