// Code around all handlers. The argument of next() is in the handler's `ctx`, with its type.
import { holdfast } from 'holdfast'
import { z } from 'zod'

const base = holdfast({ logger: false })
const hf = base
  .use(async (around) => {
    console.log(`${around.job.name} begins`)
    try {
      return await around.next()
    } finally {
      console.log(`${around.job.name} ends`)
    }
  })
  .use((around) => {
    const tenant = around.job.metadata['tenant'] ?? 'nobody'
    return around.next({ db: { save: (row: string) => console.log(`${tenant} saves ${row}`) } })
  })

const saveOrder = hf.job({
  name: 'save-order',
  input: z.object({ order: z.number() }),
  run: ({ input, ctx }) => ctx.db.save(`order ${input.order}`),
})
// A job that is defined on `base` has no middleware: no `ctx.db`, neither in its type nor at run time.
const plain = base.job({ name: 'plain', run: ({ ctx }) => console.log('plain', Object.keys(ctx)) })

await hf.work()
await (await saveOrder.enqueue({ order: 7 }, { metadata: { tenant: 'acme' } })).result()
await (await plain.enqueue()).result()
await hf.close()
