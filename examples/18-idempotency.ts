// A worker can die after the work is done and before it is acknowledged; the job is then delivered again. The test
// kit's deliver: 'twice' does that to every job, and shows which handlers are idempotent.
import { holdfast } from 'holdfast'
import { testQueue } from 'holdfast/testing'
import { z } from 'zod'

const bank = {
  balance: 100,
  done: new Set<string>(),
  charge(amount: number, idempotencyKey?: string): void {
    if (idempotencyKey !== undefined && this.done.has(idempotencyKey)) return
    if (idempotencyKey !== undefined) this.done.add(idempotencyKey)
    this.balance -= amount
  },
}

const hf = holdfast({ logger: false })
const input = z.object({ amount: z.number() })
const naive = hf.job({ name: 'naive', input, run: (context) => bank.charge(context.input.amount) })
const careful = hf.job({
  name: 'careful',
  input,
  // The id stays the same however often the job is delivered.
  run: (context) => bank.charge(context.input.amount, context.job.id),
})

await using t = await testQueue(hf, { deliver: 'twice' })
for (const job of [naive, careful]) {
  bank.balance = 100
  const { state } = await t.run(job, { amount: 10 })
  console.log(`${job.name}: ${state}, ${100 - bank.balance} charged instead of 10`)
}
