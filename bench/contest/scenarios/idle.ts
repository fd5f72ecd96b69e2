/** A worker that has nothing to do: how soon it starts, and what it costs meanwhile. */
import { setTimeout as sleep } from 'node:timers/promises'
import { percentile } from '../../report.ts'
import { usage } from '../drain.ts'
import { NORMAL, SMALL_BYTES } from '../protocol.ts'
import type { Scenario } from './scenario.ts'

/** Far enough apart that each finds the worker idle. */
const PER_SECOND = 15
/** Not measured: connections, plans and compiled code come to be. */
const WARM_UP = 20
const SETTLE_MS = 3_000

/** From before the enqueue to the handler's start, from one process to another. */
export const latency: Scenario = {
  name: 'latency',
  peers: true,
  async run(stage) {
    const samples = stage.sizes.latencySamples
    const config = { aim: 'latency', history: true } as const
    const [producer, worker] = [await stage.child(config), await stage.child(config)]
    await worker.call('startWork', {})
    await producer.call('startPacing', { perSecond: [PER_SECOND], level: NORMAL })
    await stage.started([worker], WARM_UP + samples)
    await producer.call('stopPacing')
    const { waitsMs } = await worker.call('stopWork')
    const measured = waitsMs.slice(WARM_UP, WARM_UP + samples)
    return { latencyP50: percentile(measured, 50), latencyP99: percentile(measured, 99) }
  },
}

export const idle: Scenario = {
  name: 'idle',
  peers: true,
  maxRounds: 3,
  async run(stage) {
    const worker = await stage.child({ aim: 'latency', history: true })
    // Some work first, so that all of its code is loaded.
    await worker.call('enqueueMany', { jobs: 100, bytes: SMALL_BYTES })
    await worker.call('startWork', {})
    await stage.started([worker], 100)
    await stage.server.calmDown(stage.url)
    await sleep(SETTLE_MS)
    const before = await usage(stage, [worker])
    await sleep(stage.sizes.idleSeconds * 1_000)
    const after = await usage(stage, [worker])
    const elapsedMicros = ((after.marks[0]?.atMs ?? 0) - (before.marks[0]?.atMs ?? 0)) * 1_000
    return {
      idleRss: (after.marks[0]?.rssBytes ?? Number.NaN) / 1e6,
      idleCpu: (100 * (after.clientMicros - before.clientMicros)) / elapsedMicros,
      idleServerCpu: (100 * (after.serverMicros - before.serverMicros)) / elapsedMicros,
    }
  },
}
