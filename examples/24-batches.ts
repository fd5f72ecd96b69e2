// A batch handler: many jobs per call, a result or an error for each.
import { holdfast } from 'holdfast'
import { z } from 'zod'

const hf = holdfast({ logger: false, queues: { default: {}, rows: {} } })
const insertRow = hf.batchJob({
  name: 'insert-row',
  queue: 'rows', // a queue of their own, so that claims bring nothing else
  input: z.object({ id: z.number(), text: z.string() }),
  // A call begins with 4 jobs, or with fewer once the oldest has waited for 200 ms.
  batch: { size: 4, fill: 4, wait: '200ms' },
  retry: { attempts: 2, delay: '10ms', jitter: false },
  run({ jobs }) {
    console.log(`one insert of ${jobs.length} rows: ${jobs.map(({ input }) => input.id).join(', ')}`)
    // In the order of the jobs; an Error fails that job alone.
    return jobs.map(({ input, job }) =>
      input.text === '' && job.attempt === 1
        ? new Error(`row ${input.id} is empty`)
        : `row ${input.id} at attempt ${job.attempt}`,
    )
  },
})
hf.on('job.failed', ({ error }) => console.log(`retried alone: ${error.message}`))

const { ids } = await insertRow.enqueueMany([
  { id: 1, text: 'one' },
  { id: 2, text: '' },
  { id: 3, text: 'three' },
  { id: 4, text: 'four' },
])
await hf.work()
for (const id of ids) console.log(await (await insertRow.get(id))?.result())
await hf.close()
