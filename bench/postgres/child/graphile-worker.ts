import { inSlices, load, type EnqueueOptions, type Library } from '../../contest/child/contender.ts'
import { NORMAL, type ChildConfig, type Payload } from '../../contest/protocol.ts'
import { SETTINGS } from '../settings.ts'

const { throughput, latency, bulk, poolSize } = SETTINGS['graphile-worker']
const OPTIONS = { throughput, latency }

/** What we use of graphile-worker. */
interface GraphileWorker {
  readonly Logger: new (factory: () => () => void) => object
  readonly makeWorkerUtils: (options: object) => Promise<Utils>
  readonly run: (options: object) => Promise<{ stop(): Promise<void> }>
}

interface Utils {
  migrate(): Promise<void>
  addJob(task: string, payload: Payload, spec: object): Promise<unknown>
  addJobs(jobs: readonly object[]): Promise<unknown>
  release(): Promise<void>
}

export async function graphileLibrary({ url, aim }: ChildConfig): Promise<Library> {
  const { makeWorkerUtils, run, Logger } = await load<GraphileWorker>('graphile-worker')
  const logger = new Logger(() => () => undefined)
  const utils = await makeWorkerUtils({
    preset: { worker: { connectionString: url, maxPoolSize: poolSize, logger } },
  })
  return {
    open: () => utils.migrate(),
    enqueueMany: (payloads, options) =>
      inSlices(payloads, bulk, (slice) =>
        utils.addJobs(slice.map((payload) => ({ identifier: 'noop', payload, ...specOf(options) }))),
      ),
    enqueue: async (payload, options) => {
      await utils.addJob('noop', payload, specOf(options))
    },
    work: async (handler, concurrency) => {
      const runner = await run({
        noHandleSignals: true,
        taskList: { noop: (payload: Payload) => handler(payload) },
        preset: {
          worker: {
            connectionString: url,
            logger,
            ...OPTIONS[aim],
            ...(concurrency === undefined ? {} : { concurrentJobs: concurrency }),
          },
        },
      })
      return () => runner.stop()
    },
    close: () => utils.release(),
  }
}

/** Its lowest number goes first. */
function specOf({ level, delayMs }: EnqueueOptions): object {
  return {
    ...(level === NORMAL ? {} : { priority: NORMAL - level }),
    ...(delayMs === 0 ? {} : { runAt: new Date(Date.now() + delayMs) }),
  }
}
