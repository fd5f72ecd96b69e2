/** A batch job for tests, in a world of its own. */
import { z } from 'zod'
import type { BatchOptions } from '../../src/job/batch.ts'
import { alone } from './virtual.ts'

/** A batch job that notes the inputs of each call. */
export function noting(batch: BatchOptions, parts: { retry?: { attempts: number } } = {}) {
  const fleet = alone({ queues: { default: {}, plain: {} } })
  const calls: number[][] = []
  const job = fleet.hf.batchJob({
    name: 'note',
    input: z.number(),
    batch,
    ...parts,
    run: ({ inputs }) => {
      calls.push([...inputs])
      return inputs.map((input) => input * 10)
    },
  })
  return { ...fleet, calls, job }
}
