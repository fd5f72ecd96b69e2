// At most one job holds a unique key. If the key is held, an enqueue makes no new job and says so: `duplicate`.
// `onConflict` decides what it does to a holder that is still waiting.
import { holdfast, type Unique } from 'holdfast'
import { z } from 'zod'

const hf = holdfast()
const indexPage = (name: string, rule: Omit<Unique, 'key'>) =>
  hf.job({
    name,
    input: z.object({ page: z.string(), edit: z.number() }),
    unique: ({ page }) => ({ key: page, ...rule }),
    run: ({ input }) => console.log(`  ran with edit ${input.edit}`),
  })

const jobs = [
  indexPage('ignore', { onConflict: 'ignore' }), // the first stays as it is
  indexPage('replace', { onConflict: 'replace' }), // it gets the new input and options: the latest wins
  indexPage('reschedule', { onConflict: 'reschedule' }), // it only moves to the new time: debounce
  indexPage('throttle', { for: '1h' }), // the key is held for an hour, not just until the job is finished
]

for (const job of jobs) {
  console.log(job.name)
  const first = await job.enqueue({ page: 'home', edit: 1 }, { in: '10ms' })
  const second = await job.enqueue({ page: 'home', edit: 2 }, { in: '20ms' })
  console.log(`  second: duplicate ${second.duplicate}, same job ${first.id === second.id}`)
  const other = await job.enqueue({ page: 'about', edit: 1 }, { in: '1h' })
  console.log(`  another key: duplicate ${other.duplicate}`)

  const worker = await hf.work()
  await second.result()
  await worker.stop()
  const third = await job.enqueue({ page: 'home', edit: 3 }, { in: '1h' })
  console.log(`  third: duplicate ${third.duplicate}`)
}
await hf.close()
