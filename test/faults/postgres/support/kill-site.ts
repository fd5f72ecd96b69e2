/** The kill soak on PostgreSQL. */
import { fileURLToPath } from 'node:url'
import { postgresStore } from '../../../../src/stores/postgres/index.ts'
import { withClient } from '../../../support/servers/client.ts'
import { startPostgres } from '../../../support/servers/postgres-server.ts'
import { killSoak, type KillOptions, type KillReport, type KillSite } from '../../support/kill-soak.ts'
import { installAudit, readAudit } from './audit.ts'

export async function killSoakOnPostgres(options: KillOptions): Promise<KillReport> {
  // A kill loses nothing that was written, so nothing needs to be synced.
  await using server = await startPostgres({
    version: 18,
    settings: { fsync: 'off', max_connections: '100' },
  })
  const url = await server.createDatabase('soak')
  const store = postgresStore({ url })
  await store.open()
  try {
    await installAudit(url)
    await run(
      url,
      'create table effect (job uuid primary key, fence bigint not null, times integer not null default 1)',
    )
    return await killSoak({ url, store, jobs: JOBS, clients: 1, ...answers(url) }, options)
  } finally {
    await store.close()
  }
}

const JOBS = fileURLToPath(new URL('kill-jobs.ts', import.meta.url))

function answers(url: string): Pick<KillSite, 'held' | 'isRecovered' | 'inspect'> {
  return {
    held: (workers) =>
      run(
        url,
        `select id, token::int as token from holdfast.packed_job where state = 'running' and worker = any ($1)`,
        [workers],
      ),
    async isRecovered(workers, jobs) {
      const [left] = await run<{ n: number }>(
        url,
        `select (select count(*) from holdfast.worker where id = any ($1))::int
           + (select count(*) from unnest($2::uuid[], $3::bigint[]) as held (id, token)
              where not exists (
                select from holdfast.get_job(held.id) as job
                where job.state in ('completed', 'dead', 'cancelled') or (job.state = 'running' and job.token > held.token)
              ))::int as n`,
        [workers, jobs.map(({ id }) => id), jobs.map(({ token }) => token)],
      )
      return left?.n === 0
    },
    async inspect() {
      const [effects] = await run<{ badEffects: number; repeatedEffects: number }>(
        url,
        `select count(*) filter (where effect.fence is distinct from job.token)::int as "badEffects",
           coalesce(sum(effect.times - job.attempts), 0)::int as "repeatedEffects"
         from (
           select id, token, attempt as attempts from (
             select id, token, attempt, state from holdfast.job union all
             select id, token, attempt, state from holdfast.packed_job
           ) as every where state = 'completed'
         ) as job
         left join effect on effect.job = job.id`,
      )
      const moves = await readAudit(url, () => undefined)
      return { moves, broken: [], ...(effects ?? { badEffects: NaN, repeatedEffects: NaN }) }
    },
  }
}

async function run<Row extends object>(url: string, sql: string, values: unknown[] = []): Promise<Row[]> {
  return (await withClient(url, (client) => client.query<Row>(sql, values))).rows
}
