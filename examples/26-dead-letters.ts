// Dead letters: a handler for new ones, groups by error, replay with another input, discard.
import { Fatal, holdfast } from 'holdfast'
import { z } from 'zod'

const hf = holdfast({ logger: false })
const sendMail = hf.job({
  name: 'send-mail',
  input: z.object({ to: z.string() }),
  retry: { attempts: 2, delay: '10ms', jitter: false },
  run({ input }) {
    if (input.to.endsWith('.invalid')) throw new Fatal('no such domain')
    if (!input.to.includes('@')) throw new Error('the address has no @')
    return `sent to ${input.to}`
  },
})

// Runs on some worker of the fleet, at least once for each: send a page, open a ticket.
const heard = new Promise<void>((resolve) => {
  let letters = 0
  hf.deadLetters.handle((letter) => {
    console.log(`the handler hears of ${letter.job}`)
    if (++letters === 3) resolve()
  })
})
await hf.work()
await sendMail.enqueueMany([{ to: 'ada' }, { to: 'grace' }, { to: 'bob@nowhere.invalid' }])
await heard

for (const { job, count, kind, message } of await hf.deadLetters.groups())
  console.log(`${count} × ${job}, ${kind}: ${message}`)
const { letters } = await hf.deadLetters.list({ jobs: ['send-mail'] })
for (const { input, attempts } of letters)
  console.log(
    input,
    attempts.map(({ outcome }) => outcome),
  )

// Replays with corrected inputs: the job's schema validates the function's result.
const [largest] = await hf.deadLetters.groups({ jobs: ['send-mail'] })
const { changed } = await hf.deadLetters.replay(
  { fingerprints: largest === undefined ? [] : [largest.fingerprint] },
  { input: ({ input }: { input: unknown }) => ({ to: `${(input as { to: string }).to}@example.com` }) },
)
console.log(`${changed} replayed`)
for (const { id } of letters.slice(1)) console.log(await (await sendMail.get(id))?.result())
console.log(`${(await hf.deadLetters.discard({ all: true })).changed} discarded`)
await hf.close()
