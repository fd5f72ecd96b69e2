/** Starts the thread that owns the connection to the database. */
import { Worker as Thread } from 'node:worker_threads'
import { isSource, startFromSources, threadOptions } from '../pulse/thread.ts'
import type { StoreData } from './thread/protocol.ts'

/**
 * What the thread allocates is garbage as soon as its message is sent. With Node's default (48 MB) a process that had run
 * 100,000 jobs took 400 to 420 MB instead of 300 to 325; with 2 to 16 MB it was as fast.
 */
const YOUNG_MB = 8

export function startStoreThread(data: StoreData): Thread {
  const { execArgv = [], ...options } = threadOptions(data)
  const all = {
    ...options,
    name: 'holdfast-store',
    execArgv: [...execArgv, ...quiet()],
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
  }
  if (isSource(import.meta.url)) return startFromSources('./store-thread.ts', import.meta.url, all)
  // Bundlers recognise exactly this form and include the file.
  return new Thread(new URL('./store-thread.js', import.meta.url), all)
}

/** Some versions of Node warn that `node:sqlite` is new. */
function quiet(): string[] {
  return process.allowedNodeEnvironmentFlags.has('--disable-warning')
    ? ['--disable-warning=ExperimentalWarning']
    : []
}
