// A queue without handlers: send messages, get them, ack or nack each. Leases, retries, timeouts and dead letters are
// the same as a worker's; only the loop is yours.
import { holdfast } from 'holdfast'

const hf = holdfast({ logger: false, queues: { orders: {} } })
const orders = hf.queue('orders')

const sent = await orders.send({ order: 1 }, { retry: { attempts: 2 } })
await orders.send({ order: 2 }, { name: 'refund', priority: 'high' })
await orders.send({ order: 3 }, { in: '1h' })
console.log(`size ${await orders.size()}`)

const [refund, order] = await orders.get({ limit: 10 })
console.log('got', refund?.name, refund?.payload, 'and', order?.name, order?.payload)
console.log(`size ${await orders.size()}`)

await refund?.ack({ refunded: true })
await refund?.ack().catch((error: Error) => console.log(error.message.replace(refund.id, '…')))

// Back to the queue; `wait` waits for a first message.
await order?.nack(new Error('warehouse is closed'), { retryIn: '20ms' })
const [again] = await orders.get({ wait: '1s' })
console.log('again', again?.payload, `attempt ${again?.job.attempt} of ${again?.job.maxAttempts}`)
await again?.nack(new Error('still closed'))
console.log(await sent.state(), await sent.result().catch((error: Error) => error.message))

console.log('nothing', await orders.get())
await hf.close()
