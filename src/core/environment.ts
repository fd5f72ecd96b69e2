/**
 * The environment variables that Holdfast reads. Options in code override the environment, which overrides the
 * defaults.
 */
import { HoldfastError } from '../errors.ts'
import { readWhole } from '../job/numbers.ts'

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
  const whole = (name: string, min: number, max: number): number | undefined => {
    const text = env[name]
    if (text === undefined || text.trim() === '') return undefined
    if (!/^\s*\d+\s*$/.test(text)) {
      throw new HoldfastError(
        'HF_BAD_OPTION',
        `The environment variable ${name} is '${text}', not a whole number.`,
        {
          hint: `Set it to a whole number from ${min} to ${max}, or unset it.`,
        },
      )
    }
    return readWhole(Number(text), `The environment variable ${name}`, min, max)
  }
  const store = env['HOLDFAST_STORE']
  return {
    store: store === undefined || store === '' ? undefined : store,
    pollMs: whole('JOB_POLL_INTERVAL', 1, 3_600_000),
    batchSize: whole('JOB_BATCH_SIZE', 1, 1_000),
    maxRetries: whole('JOB_MAX_RETRIES', 0, 32_766),
    concurrency: whole('WORKER_CONCURRENCY', 1, 10_000),
  }
}
