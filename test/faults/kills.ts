/**
 * `npm run soak:kills -- [--store postgres|redis|sqlite] [--rounds N] [--seed S]`: kills workers under load (and Redis itself),
 * round by round, prints what happened to their jobs, and exits with 1 if any job was lost, ran twice or was late.
 */
import { parseArgs } from 'node:util'
import { killSoakOnPostgres } from './postgres/support/kill-site.ts'
import { killSoakOnRedis } from './redis/support/kill-site.ts'
import { killSoakOnSqlite } from './sqlite/support/kill-site.ts'
import { RECOVERY_MS, type KillReport } from './support/kill-soak.ts'

/** On Redis 125 rounds are 100 kills of workers, 25 freezes, and 21 kills of Redis. */
const SOAKS = {
  postgres: { run: killSoakOnPostgres, rounds: 100 },
  redis: { run: killSoakOnRedis, rounds: 125 },
  sqlite: { run: killSoakOnSqlite, rounds: 200 },
}

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'postgres' },
    rounds: { type: 'string' },
    seed: { type: 'string' },
  },
})
const soak = isStore(values.store) ? SOAKS[values.store] : undefined
const rounds = Number(values.rounds ?? soak?.rounds)
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(values.seed)
if (soak === undefined || !Number.isInteger(rounds) || rounds < 1 || !Number.isInteger(seed)) {
  console.error('usage: npm run soak:kills -- [--store postgres|redis|sqlite] [--rounds N] [--seed S]')
  process.exit(2)
}

const report = await soak.run({
  rounds,
  seed,
  onRound: ({ number, what, held }) =>
    console.error(`round ${number} of ${rounds}: ${what}, ${held} jobs held`),
})
const late = report.recoveriesMs.filter((ms) => ms > RECOVERY_MS).length
print(report)
for (const violation of report.violations) console.error(violation)
process.exitCode = report.lost + report.badEffects + report.violations.length + late === 0 ? 0 : 1

function isStore(name: string): name is keyof typeof SOAKS {
  return name in SOAKS
}

function print(told: KillReport): void {
  const sorted = told.recoveriesMs.toSorted((a, b) => a - b)
  const at = (share: number): string => `${Math.round(sorted[Math.ceil(sorted.length * share) - 1] ?? 0)} ms`
  const recoveries: readonly (readonly [name: string, value: string | number])[] = [
    ['jobs rescued', told.rescued ?? 0],
    ['recovery of a job p50 / p99 / max', `${at(0.5)} / ${at(0.99)} / ${at(1)}`],
    [`recovered later than ${RECOVERY_MS} ms`, late],
  ]
  const rows: readonly (readonly [name: string, value: string | number])[] = [
    ['rounds', `${told.rounds}, seed ${seed}`],
    ['kills (SIGKILL)', told.kills],
    ['freezes (SIGSTOP beyond the lease)', told.freezes],
    ['kills of the server', told.serverKills],
    ['jobs acked', told.acked],
    ['  completed', told.completed],
    ['  dead', told.dead],
    ['  cancelled', told.cancelled],
    ['  lost', told.lost],
    ['stale settles refused', told.staleSettlesRefused],
    ['rules broken, stale settles accepted', told.violations.length],
    ['completed without exactly one fenced effect', told.badEffects],
    ['runs that no attempt counts', told.repeatedEffects],
    // A store that keeps no moves cannot say when a job was rescued or claimed again.
    ...(told.rescued === null ? [] : recoveries),
  ]
  for (const [name, value] of rows) console.log(`${name.padEnd(46)}${value}`)
}
