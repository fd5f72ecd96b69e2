// A schema types the input and checks it twice: when it is enqueued, and again before the handler, where defaults and
// coercions apply. Any Standard Schema works: zod, valibot, arktype.
import { holdfast, InvalidInputError } from 'holdfast'
import { z } from 'zod'

const hf = holdfast()
const sendInvoice = hf.job({
  name: 'send-invoice',
  input: z.object({
    to: z.email(),
    copies: z.number().int().positive().default(1),
    // Jobs are stored as JSON, so a date is stored as a string; the handler gets a Date.
    due: z.iso.date().transform((text) => new Date(text)),
  }),
  run: ({ input }) => `${input.copies} copy to ${input.to}, due in ${input.due.getUTCFullYear()}`,
})

await hf.work()
const invoice = await sendInvoice.enqueue({ to: 'ada@example.org', due: '2030-01-31' })
console.log(await invoice.result())

try {
  await sendInvoice.enqueue({ to: 'nobody', due: '2030-01-31', copies: 0 })
} catch (error) {
  if (!(error instanceof InvalidInputError)) throw error
  console.log(error.code)
  for (const { path, message } of error.issues) console.log(`- ${path}: ${message}`)
  console.log(error.hint)
}
await hf.close()
