// Jobs in your own tests: the real rules on a clock that you move, so an hour takes no time and nothing is flaky.
import assert from 'node:assert/strict'
import { holdfast } from 'holdfast'
import { testQueue } from 'holdfast/testing'
import { z } from 'zod'

// The code under test: signing up sends a welcome mail now, and a survey after a week.
const hf = holdfast({ logger: false })
const sent: string[] = []
const mail = hf.job({
  name: 'mail',
  input: z.object({ to: z.email(), about: z.string().default('welcome') }),
  retry: { delay: '1m', jitter: false },
  run({ input }) {
    if (input.to === 'full@example.org') throw new Error('mailbox full')
    sent.push(input.about)
    return { sent: sent.length }
  },
})
async function signUp(to: string): Promise<void> {
  await mail.enqueue({ to })
  await mail.enqueue({ to, about: 'survey' }, { in: '7d' })
}

await using t = await testQueue(hf, { start: '2030-01-01T00:00:00Z' })
await signUp('ada@example.org')
for (const { input, runAt } of await t.enqueued(mail)) console.log('enqueued:', input, runAt.toISOString())
console.log('drain:', await t.drain(), sent)

await t.advance('6d') // moves the clock; runs nothing
console.log('a day before:', await t.drain(), sent)
console.log('until then:', await t.drain({ until: '2030-01-08T00:00:00Z' }), sent)

console.log('run:', await t.run(mail, { to: 'eve@example.org' }))
const failed = await t.run(mail, { to: 'full@example.org' })
assert(failed.state === 'retrying')
console.log(`run: ${failed.error.message}, again in ${failed.retryInMs / 1_000} s`)
