/** The jobs of the kill soak on PostgreSQL. */
import { Pool } from 'pg'
import { killWork } from '../../support/kill-work.ts'

const pool = new Pool({ connectionString: process.env['HOLDFAST_STORE'], max: 2, allowExitOnIdle: true })
pool.on('error', () => undefined)

export const work = killWork((job, fence) =>
  pool.query(
    `insert into effect as before (job, fence) values ($1, $2)
     on conflict (job) do update set fence = excluded.fence, times = before.times + 1
     where before.fence < excluded.fence`,
    [job, fence],
  ),
)
