// Two ways to run again later without using an attempt, shown by jobs with only one: snooze when there is nothing to do
// yet, and throw DependencyDown when something that the job needs is known to be down.
import { DependencyDown, holdfast } from 'holdfast'

const hf = holdfast({ logger: false })
const answers = ['pending', 'pending', 'paid']
const awaitPayment = hf.job({
  name: 'await-payment',
  retry: { attempts: 1 },
  run({ job, snooze }) {
    const answer = answers.shift()
    console.log(`attempt ${job.attempt} of ${job.maxAttempts}: ${answer}`)
    return answer === 'paid' ? { paid: true } : snooze('10ms')
  },
})
const outages = [true, false]
const sendSms = hf.job({
  name: 'send-sms',
  retry: { attempts: 1 },
  run({ job }) {
    console.log(`attempt ${job.attempt} of ${job.maxAttempts}`)
    if (outages.shift()) throw new DependencyDown('sms gateway', { retryAfter: '10ms' })
    return 'sent'
  },
})

hf.on('job.snoozed', ({ error }) => console.log(error === null ? 'snoozed' : `parked: ${error.message}`))
await hf.work()
const payment = await awaitPayment.enqueue()
console.log(await payment.result())
const sms = await sendSms.enqueue()
console.log(await sms.result())
await hf.close()
