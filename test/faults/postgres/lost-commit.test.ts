/**
 * A server that loses a commit: it does not wait for the disk (`synchronous_commit = off`), and crashes right after it has
 * acknowledged the handler's commit. The effect and the completion are lost together; the lease is not.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { holdfast } from '../../../src/index.ts'
import { postgresStore } from '../../../src/stores/postgres/index.ts'
import { withClient } from '../../support/servers/client.ts'
import { startPostgres, type PostgresServer } from '../../support/servers/postgres-server.ts'
import { until } from '../../support/until.ts'

/** The server may flush its log at any time, and then nothing is lost. */
const MOST_TRIES = 10

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres({
    version: 18,
    // Neither the background writer nor a commit of a duty flushes the log between the handler's commit and the crash.
    settings: { fsync: 'off', synchronous_commit: 'off', wal_writer_delay: '10s' },
  })
  await withClient(server.url(), (client) =>
    client.query('create table effects (job uuid not null); create table flushes ()'),
  )
})
afterAll(() => server.dispose())

/** Everything that was committed before survives a crash. */
async function flushLog(): Promise<void> {
  await withClient(server.url(), (client) =>
    client.query('set synchronous_commit = on; insert into flushes default values'),
  )
}

async function effectsOf(job: string): Promise<number> {
  const { rows } = await withClient(server.url(), (client) =>
    client.query('select from effects where job = $1', [job]),
  )
  return rows.length
}

test('a job whose commit was lost runs again, and never completes without its effect', async () => {
  const hf = holdfast({ store: postgresStore({ url: server.url() }), logger: false })
  const attempts = new Map<string, number[]>()
  const pay = hf.job({
    name: 'pay',
    async run({ commit, job: { id, attempt } }) {
      const before = attempts.get(id) ?? []
      attempts.set(id, [...before, attempt])
      await flushLog()
      await commit((tx) => tx.query('insert into effects values ($1)', [id]))
      // The settle must reach the server after the crash. Before it, the answer would be true at that moment, and the job
      // would run again only once its lease is found.
      if (before.length === 0) await server.restart('immediate')
    },
  })
  const lost: string[] = []
  const completed: string[] = []
  hf.on('commit.lost', ({ id }) => void lost.push(id))
  hf.on('job.completed', ({ id }) => void completed.push(id))
  await hf.work()
  const jobs: string[] = []
  for (let tries = 0; tries < MOST_TRIES && lost.length === 0; tries++) {
    const { id } = await pay.enqueue()
    jobs.push(id)
    await until('the job to be completed', () => completed.includes(id))
  }
  expect(lost).toEqual([jobs.at(-1)])
  for (const id of jobs) {
    expect(await effectsOf(id), 'its effect is there once').toBe(1)
    // The lost attempt does not count. If the crash loses the claim alone, the job also starts again.
    expect(lost.includes(id) ? [[1, 1]] : [[1], [1, 1]]).toContainEqual(attempts.get(id))
    expect(await (await pay.get(id))?.read()).toMatchObject({ state: 'completed', attempt: 1 })
  }
  await hf.close()
})
