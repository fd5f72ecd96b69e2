// Delayed jobs: `in` a duration, or `at` a time. Until then they are `scheduled`, and take no slot.
import { holdfast, HoldfastError } from 'holdfast'
import { z } from 'zod'

const hf = holdfast()
const remind = hf.job({
  name: 'remind',
  input: z.string(),
  run: ({ input }) => console.log(`remind: ${input}`),
})

const last = await remind.enqueue('in 200 ms', { in: '200ms' })
const second = await remind.enqueue('at a time', { at: new Date(Date.now() + 100) })
const first = await remind.enqueue('now')
for (const job of [first, second, last]) console.log(await job.state())

await hf.work()
await last.result()

try {
  // A time without a zone would differ between machines.
  await remind.enqueue('tomorrow', { at: '2030-01-31 09:00' })
} catch (error) {
  if (!(error instanceof HoldfastError)) throw error
  console.log(`${error.code}\n${error.hint}`)
}
await hf.close()
