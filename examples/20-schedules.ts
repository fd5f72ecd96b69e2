// A recurring job. The schedule is kept in the store: every process sees the same, and each tick fires once.
import { holdfast } from 'holdfast'
import { z } from 'zod'

const hf = holdfast({ logger: false })
let ticks = 0
let enough = (): void => undefined
const three = new Promise<void>((resolve) => (enough = resolve))

const tick = hf.job({
  name: 'tick',
  input: z.object({ of: z.string() }),
  // Stored under the job's name when a worker starts.
  schedule: { every: '1s', input: { of: 'the second hand' } },
  run({ input }) {
    if (++ticks > 3) return
    console.log(`tick ${ticks} of ${input.of}`)
    if (ticks === 3) enough()
  },
})
await hf.work()
await three
console.log('removed:', await tick.unschedule('tick'))

// By local time, with a zone; options decide what happens if no worker is running, or the last job is unfinished.
await tick.schedule('weekdays', {
  cron: '30 9 * * MON-FRI',
  tz: 'Europe/Berlin',
  catchUp: 'skip',
  overlap: 'skip',
  input: { of: 'the office clock' },
})
const weekdays = await hf.schedules.get('weekdays')
const hours = weekdays?.next(3).map((at) => at.toLocaleTimeString('en-GB', { timeZone: 'Europe/Berlin' }))
console.log('next:', hours?.join(', '))

await weekdays?.pause()
console.log('paused:', (await hf.schedules.get('weekdays'))?.paused)

try {
  await tick.schedule('never', { cron: '0 0 31 2 *', input: { of: 'nothing' } })
} catch (error) {
  console.log((error as Error).message)
}
await hf.close()
