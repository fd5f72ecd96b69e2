/**
 * `npm run mutants -- [--kind postgres|redis|sqlite|worker|simulation] [--only text] [--all] [--write]`: plants each mutant (or those whose name
 * contains the text) and checks that the tests that it names notice it. `--all` runs every test of the suite on each mutant
 * of a store and tells which notice it: to choose the tests of a new one. `--write` is for mutants of the simulation.
 */
import { parseArgs } from 'node:util'
import { huntInSimulation } from '../simulation/mutants/main.ts'
import { startPostgres } from '../support/servers/postgres-server.ts'
import { startRedis } from '../support/servers/redis-server.ts'
import { BUDGET_MS, hunt, testsOn, type MutantSite } from './hunt.ts'
import type { TextMutant } from './mutant.ts'
import { POSTGRES_MUTANTS } from './postgres/mutants.ts'
import { postgresSite } from './postgres/site.ts'
import { REDIS_MUTANTS } from './redis/mutants.ts'
import { redisSite } from './redis/site.ts'
import { SQLITE_CODE_MUTANTS } from './sqlite/code-mutants.ts'
import { SQLITE_MUTANTS } from './sqlite/mutants.ts'
import { sqliteSite } from './sqlite/site.ts'
import { huntByTests } from './worker/hunt.ts'
import { WORKER_MUTANTS, type WorkerMutant } from './worker/mutants.ts'

const { values } = parseArgs({
  options: {
    kind: { type: 'string' },
    only: { type: 'string', default: '' },
    all: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
})

if (values.kind === undefined || values.kind === 'postgres') await huntInPostgres()
if (values.kind === undefined || values.kind === 'redis') await huntInRedis()
if (values.kind === undefined || values.kind === 'sqlite') {
  await huntOn(sqliteSite, SQLITE_MUTANTS)
  await huntInCode(SQLITE_CODE_MUTANTS)
}
if (values.kind === undefined || values.kind === 'worker') await huntInCode(WORKER_MUTANTS)
if (values.kind === undefined || values.kind === 'simulation') await huntInSimulation(values)

async function huntInPostgres(): Promise<void> {
  const server = await startPostgres({ version: 18, settings: { fsync: 'off' } })
  try {
    await huntOn(postgresSite(server.url('postgres')), POSTGRES_MUTANTS)
  } finally {
    await server.dispose()
  }
}

async function huntInRedis(): Promise<void> {
  await using server = await startRedis()
  await huntOn(redisSite(server.url), REDIS_MUTANTS)
}

async function huntInCode(mutants: readonly WorkerMutant[]): Promise<void> {
  for (const mutant of mutants.filter(({ name }) => name.includes(values.only))) {
    const title = await huntByTests(mutant)
    if (title === null) process.exitCode = 1
    console.log(`${mutant.name.padEnd(56)} ${title === null ? 'SURVIVED' : `caught by "${title}"`}`)
  }
}

async function huntOn(site: MutantSite, mutants: readonly TextMutant[]): Promise<void> {
  const every = [...testsOn(site, (_, text) => text).keys()]
  for (const mutant of mutants.filter(({ name }) => name.includes(values.only))) {
    const titles = values.all ? every : mutant.caughtBy
    try {
      report(mutant, await hunt(mutant, site, titles))
    } catch (error) {
      process.exitCode = 1
      console.log(`${mutant.name}: ${String(error)}`)
    }
  }
}

function report({ name }: TextMutant, hunted: Awaited<ReturnType<typeof hunt>>): void {
  if (values.all) {
    const noticed = hunted.filter(({ caught }) => caught !== null)
    console.log(`${name}: ${noticed.length} of ${hunted.length} tests`)
    for (const { title, caught } of noticed.slice(0, 8)) console.log(`  ${title}: ${caught?.slice(0, 120)}`)
    return
  }
  for (const { title, ms, caught } of hunted) {
    const isGood = caught !== null && ms <= BUDGET_MS
    if (!isGood) process.exitCode = 1
    const what = caught === null ? 'SURVIVED' : ms > BUDGET_MS ? 'caught too late by' : 'caught by'
    console.log(`${name.padEnd(56)} ${what} "${title}" in ${Math.round(ms)} ms`)
  }
}
