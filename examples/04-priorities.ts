// Urgent jobs overtake others, and nothing starves: a priority is a head start in time. Each of its levels (0 to 9) is
// worth a minute, so a background job (1) that has waited for eight goes before an urgent one (9) that is new.
import { holdfast } from 'holdfast'
import { z } from 'zod'

const hf = holdfast({
  // The head start of a level, per queue; with 'strict' a higher priority always goes first.
  queues: { default: { aging: '1m' } },
})
const notify = hf.job({
  name: 'notify',
  input: z.string(),
  priority: 'normal',
  run: ({ input }) => console.log(input),
})

const newsletter = await notify.enqueue('newsletter', { priority: 'background' })
await notify.enqueue('receipt')
await notify.enqueue('password reset', { priority: 'urgent' })
await notify.enqueue('second receipt', { priority: 5 }) // 'normal' is 5; equals go by age

await hf.work({ concurrency: 1 })
await newsletter.result()
await hf.close()
