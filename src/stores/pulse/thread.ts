/** How a store's thread is started: `postgres/start-pulse.ts` shows it. */
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { Worker as Thread, type WorkerOptions } from 'node:worker_threads'

/**
 * A thread that renews leases allocates next to nothing. With Node's default (48 MB) an idle worker takes 0.7 MB more on
 * Redis and 1.6 MB more on PostgreSQL; 1 MB saves no more than this, 4 MB saves nothing.
 */
const YOUNG_MB = 2

/** `data` is what the thread's file finds as `workerData`: it must be cloneable. */
export function threadOptions(data: unknown): WorkerOptions {
  return {
    name: 'holdfast-pulse',
    workerData: data,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    // Without the program's preloads (--import, --require), which are written for its main thread.
    execArgv: [],
    env: { ...process.env, NODE_OPTIONS: '' },
  }
}

/** Whether the module of that URL is a source, as in our own tests, benchmarks and examples. */
export function isSource(moduleUrl: string): boolean {
  return moduleUrl.endsWith('.ts')
}

/**
 * For sources: Node 20 cannot load TypeScript, and a thread has neither vitest's nor tsx's loader. (Code for `eval`
 * would need no such detour, but neither compiler nor linter checks it.) `path` is relative to the module `from`.
 */
export function startFromSources(path: string, from: string, options: WorkerOptions): Thread {
  const file = JSON.stringify(fileURLToPath(new URL(path, from)))
  const jiti = JSON.stringify(createRequire(import.meta.url).resolve('jiti'))
  const load = `require(${jiti}).createJiti(${file}).import(${file})`
  // A compiler runs first: it must not do so in little memory.
  return new Thread(load, { ...options, resourceLimits: {}, eval: true })
}
