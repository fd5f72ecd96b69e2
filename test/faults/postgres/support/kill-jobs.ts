/** What the workers of the kill soak run: `holdfast work` loads this file, so that each is a process of its own. */
import { Pool } from 'pg'
import { Fatal, holdfast } from 'holdfast'
import { anything, type Behaviour } from './behaviour.ts'

/** What the soak is told. */
export type FromWorker = { readonly type: 'worker'; readonly id: string } | { readonly type: 'lost' }

const tell = (message: FromWorker): void => void process.send?.(message)
// Nobody is left to stop us once the soak itself is gone.
process.on('disconnect', () => process.exit(1))
process.channel?.unref()

const pool = new Pool({ connectionString: process.env['HOLDFAST_STORE'], max: 2, allowExitOnIdle: true })
pool.on('error', () => undefined)

const hf = holdfast()
hf.on('worker.started', ({ worker: id }) => tell({ type: 'worker', id }))
hf.on('worker.reborn', ({ worker: id }) => tell({ type: 'worker', id }))
hf.on('job.lost', () => tell({ type: 'lost' }))

export const work = hf.job({
  name: 'work',
  input: anything<Behaviour>(),
  retry: { attempts: 3, delay: 100, maxDelay: 400, crashes: 50 },
  async run({ input, job, fence }) {
    await new Promise((resolve) => setTimeout(resolve, input.ms))
    // Never by a lease that is older than the last one that did.
    await pool.query(
      `insert into effect as before (job, fence) values ($1, $2)
       on conflict (job) do update set fence = excluded.fence, times = before.times + 1
       where before.fence < excluded.fence`,
      [job.id, String(fence)],
    )
    if (input.fails < job.attempt) return
    throw input.fatal ? new Fatal('hopeless') : new Error('went wrong')
  },
})
