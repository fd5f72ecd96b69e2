/** Holdfast as it was built, not as it stands in the sources. */
import { pathToFileURL } from 'node:url'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type * as Holdfast from 'holdfast'
import type { Aim, ChildConfig, Level, Payload } from '../protocol.ts'
import { load, type EnqueueOptions, type Handler, type Library } from './contender.ts'

const PRIORITIES: Readonly<Record<Level, Holdfast.Priority>> = {
  0: 'background',
  1: 'low',
  2: 'normal',
  3: 'high',
  4: 'urgent',
}

/** Takes what it gets, as the peers do. */
const anything: StandardSchemaV1<Payload> = {
  '~standard': { version: 1, vendor: 'bench', validate: (value) => ({ value: value as Payload }) },
}

export type HoldfastSettings = Readonly<Record<Aim, { readonly concurrency: number }>>

/** `store`: what to open instead of the URL. */
export async function holdfastLibrary(
  { url, aim, history, build }: ChildConfig,
  settings: HoldfastSettings,
  store: NonNullable<Holdfast.Options<{}>['store']> = url,
): Promise<Library> {
  const { holdfast } = await load<typeof Holdfast>(pathToFileURL(build).href)
  const hf = holdfast({
    store,
    logger: false,
    // The embedded store may take its time on a busy machine; that is not what is measured.
    timeout: '1m',
    ...(history ? {} : { keep: { completed: 0 } }),
  })
  let handler: Handler = () => undefined
  const job = hf.job({ name: 'noop', input: anything, run: ({ input }) => handler(input) })
  return {
    // The first call opens the store, and migrates.
    open: async () => void (await hf.queues()),
    enqueueMany: async (payloads, options) => void (await job.enqueueMany(payloads, optionsOf(options))),
    enqueue: async (payload, options) => void (await job.enqueue(payload, optionsOf(options))),
    work: async (run, concurrency = settings[aim].concurrency) => {
      handler = run
      const worker = await hf.work({ concurrency })
      return () => worker.stop()
    },
    runFirstJob: async (run) => {
      handler = run
      const completed = new Promise<void>((resolve) => hf.on('job.completed', () => resolve()))
      await hf.work({ concurrency: settings[aim].concurrency })
      await job.enqueue({ pad: '' })
      await completed
    },
    close: () => hf.close(),
  }
}

function optionsOf({ level, delayMs }: EnqueueOptions): Holdfast.EnqueueOptions<'default'> {
  return { priority: PRIORITIES[level], ...(delayMs === 0 ? {} : { in: delayMs }) }
}
