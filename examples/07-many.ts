// Any number of jobs, from any iterable, in bounded memory. A refused input does not stop the others: the error lists
// each by its index. hf.enqueueMany() takes different jobs, all of them or none.
import { holdfast, PartialEnqueueError } from 'holdfast'
import { z } from 'zod'

const hf = holdfast()
const mail = hf.job({ name: 'mail', input: z.object({ to: z.email() }), run: () => undefined })
const report = hf.job({ name: 'report', run: () => undefined })

async function* subscribers(): AsyncGenerator<{ to: string }> {
  for (let n = 0; n < 2_500; n++) yield { to: `user${n}@example.org` }
}
console.log(await mail.enqueueMany(subscribers()))

try {
  await mail.enqueueMany([{ to: 'ada@example.org' }, { to: 'bob' }, { to: 'eve@example.org' }, { to: '' }])
} catch (error) {
  if (!(error instanceof PartialEnqueueError)) throw error
  console.log(`${error.code}: ${error.inserted} enqueued, ${error.failed} not`)
  for (const failure of error.failures) console.log(`- ${failure.index}: ${failure.error.message}`)
}

const { inserted } = await hf.enqueueMany([
  mail.with({ to: 'ada@example.org' }, { priority: 'high' }),
  report.with(undefined, { in: '1h' }),
])
console.log(`${inserted} different jobs in one step`)
await hf.close()
