/**
 * Exactly-once effects on a real PostgreSQL: a worker is killed (kill -9) at every step of a handler that commits, and
 * another worker takes over. However far the first one got, the effect exists once and the job completes.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, sharedPostgres, type Database } from '../../support/servers/database.ts'
import { withClient } from '../../support/servers/client.ts'
import { Child } from '../support/child.ts'
import { project } from '../support/project.ts'
import { until } from '../../support/until.ts'

const { write, folder } = project()

const STEPS = [
  'before commit',
  'in the transaction, before the write',
  'in the transaction, after the write',
  'after the commit, before the return',
] as const

/** Kills itself at the given step. The next worker gets no step. */
const WORKER = `
import { holdfast } from 'holdfast'
import { postgresStore } from 'holdfast/postgres'
const [url, schema, step = ''] = process.argv.slice(2)
const hf = holdfast({ store: postgresStore({ url, schema }), logger: false })
const at = (name) => { if (name === step) process.kill(process.pid, 'SIGKILL') }
const pay = hf.job({
  name: 'pay',
  async run({ commit, job }) {
    at('before commit')
    const paid = await commit(async (tx) => {
      at('in the transaction, before the write')
      await tx.query('insert into payments (schema, job) values ($1, $2)', [schema, job.id])
      at('in the transaction, after the write')
      return { paid: 1 }
    })
    at('after the commit, before the return')
    return paid
  },
})
if (step !== '') await pay.enqueue()
hf.on('job.completed', () => console.log('completed'))
await hf.work({ lease: '1s', poll: 100 })
console.log('working')
`

let database: Database
beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
  await withClient(database.url, (client) =>
    client.query('create table payments (schema text not null, job uuid not null)'),
  )
}, 60_000)
afterAll(() => database.drop())

const node = (file: string, ...args: string[]): Child =>
  new Child(process.execPath, [file, ...args], { cwd: folder })

test('a worker that is killed at any step has its effect once', { timeout: 60_000 }, async () => {
  const file = write('pay.mjs', WORKER)
  // Concurrent, because each waits for leases to expire.
  const effects = await Promise.all(STEPS.map((step, index) => effectsAfter(file, step, `s${index}`)))
  expect(effects).toEqual(STEPS.map(() => 1))
})

async function effectsAfter(file: string, step: string, schema: string): Promise<number> {
  const first = node(file, database.url, schema, step)
  expect(await first.ended(), first.err.join('\n')).toMatchObject({ signal: 'SIGKILL' })
  const second = node(file, database.url, schema)
  await second.line('working')
  await until('the job to be completed', async () => (await stateIn(schema)) === 'completed')
  const { rows } = await withClient(database.url, (client) =>
    client.query('select job from payments where schema = $1', [schema]),
  )
  return rows.length
}

async function stateIn(schema: string): Promise<unknown> {
  const { rows } = await withClient(database.url, (client) =>
    client.query(`select status from ${schema}.job_queue`),
  )
  return (rows as { status: string }[])[0]?.status
}
