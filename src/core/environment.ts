/** The environment variables that Holdfast reads. Code wins over the environment, the environment over the defaults. */
import { whole } from '../job/options.ts'

export interface Environment {
  /** HOLDFAST_STORE: where jobs are kept. */
  readonly store: string | undefined
  /** JOB_POLL_INTERVAL, in milliseconds. */
  readonly pollMs: number | undefined
  /** JOB_BATCH_SIZE: maximum number of jobs per claim. */
  readonly batchSize: number | undefined
  /** JOB_MAX_RETRIES: attempts after the first one. */
  readonly maxRetries: number | undefined
  /** WORKER_CONCURRENCY: slots of a worker. */
  readonly concurrency: number | undefined
}

export function readEnvironment(env: Readonly<Record<string, string | undefined>>): Environment {
  const read = (name: string, min: number, max: number): number | undefined => {
    const text = env[name]
    if (text === undefined || text.trim() === '') return undefined
    // Number() also takes '', '0x10' and '1e3', which are more likely a slip.
    return whole(min, max)(/^\s*\d+\s*$/.test(text) ? Number(text) : text, `process.env.${name}`)
  }
  const store = env['HOLDFAST_STORE']
  return {
    store: store === undefined || store === '' ? undefined : store,
    pollMs: read('JOB_POLL_INTERVAL', 1, 3_600_000),
    batchSize: read('JOB_BATCH_SIZE', 1, 1_000),
    maxRetries: read('JOB_MAX_RETRIES', 0, 32_766),
    concurrency: read('WORKER_CONCURRENCY', 1, 10_000),
  }
}
