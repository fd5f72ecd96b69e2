/**
 * `npm run soak:kills -- [--rounds 100] [--seed S]`: kills workers under load, round by round, prints what became of
 * their jobs, and exits 1 where anything was lost, doubled or late.
 */
import { parseArgs } from 'node:util'
import { killSoak, RECOVERY_MS, type KillReport } from './support/kill-soak.ts'

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '100' }, seed: { type: 'string' } },
})
const rounds = Number(values.rounds)
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(values.seed)
if (!Number.isInteger(rounds) || rounds < 1 || !Number.isInteger(seed)) {
  console.error('usage: npm run soak:kills -- [--rounds 100] [--seed S]')
  process.exit(2)
}

const report = await killSoak({
  rounds,
  seed,
  onRound: ({ number, what, held }) =>
    console.error(`round ${number} of ${rounds}: ${what}, ${held} jobs held`),
})
const late = report.recoveriesMs.filter((ms) => ms > RECOVERY_MS).length
print(report)
for (const violation of report.violations) console.error(violation)
process.exitCode = report.lost + report.badEffects + report.violations.length + late === 0 ? 0 : 1

function print(told: KillReport): void {
  const sorted = told.recoveriesMs.toSorted((a, b) => a - b)
  const at = (share: number): string => `${Math.round(sorted[Math.ceil(sorted.length * share) - 1] ?? 0)} ms`
  const rows: readonly (readonly [name: string, value: string | number])[] = [
    ['rounds', `${told.rounds}, seed ${seed}`],
    ['kills (SIGKILL)', told.kills],
    ['freezes (SIGSTOP beyond the lease)', told.freezes],
    ['jobs acked', told.acked],
    ['  completed', told.completed],
    ['  dead', told.dead],
    ['  cancelled', told.cancelled],
    ['  lost', told.lost],
    ['jobs rescued', told.rescued],
    ['stale settles refused', told.staleSettlesRefused],
    ['rules broken, stale settles accepted', told.violations.length],
    ['completed without exactly one fenced effect', told.badEffects],
    ['handlers run once more than needed', told.repeatedEffects],
    ['recovery of a job p50 / p99 / max', `${at(0.5)} / ${at(0.99)} / ${at(1)}`],
    [`recovered later than ${RECOVERY_MS} ms`, late],
  ]
  for (const [name, value] of rows) console.log(`${name.padEnd(46)}${value}`)
}
