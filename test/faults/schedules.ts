/**
 * `npm run soak:schedules -- [--store postgres|redis|sqlite] [--minutes N] [--schedules N] [--seed S]`: freezes and kills whoever
 * leads three schedulers, prints what became of the ticks, and exits 1 where one was lost or doubled, or where ticks are
 * late while nothing is wrong.
 */
import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { scheduleSoakOnPostgres } from './postgres/support/schedule-site.ts'
import { scheduleSoakOnRedis } from './redis/support/schedule-site.ts'
import { scheduleSoakOnSqlite } from './sqlite/support/schedule-site.ts'
import { LATE_MS, type ScheduleReport } from './support/schedule-soak.ts'
import type { Lateness } from './support/tick-judge.ts'

const SOAKS: Readonly<Record<string, typeof scheduleSoakOnPostgres>> = {
  postgres: scheduleSoakOnPostgres,
  redis: scheduleSoakOnRedis,
  sqlite: scheduleSoakOnSqlite,
}
/** So many of what went wrong are printed. */
const MOST_PRINTED = 20

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'postgres' },
    minutes: { type: 'string', default: '5' },
    schedules: { type: 'string', default: '200' },
    seed: { type: 'string' },
  },
})
const soak = SOAKS[values.store]
const minutes = Number(values.minutes)
const schedules = Number(values.schedules)
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(values.seed)
if (
  soak === undefined ||
  !(minutes > 0) ||
  !Number.isInteger(schedules) ||
  schedules < 1 ||
  !Number.isInteger(seed)
) {
  console.error(
    'usage: npm run soak:schedules -- [--store postgres|redis|sqlite] [--minutes N] [--schedules N] [--seed S]',
  )
  process.exit(2)
}

const report = await soak({
  schedules,
  lasts: { ms: minutes * 60_000 },
  quietMs: { least: 6_000, most: 10_000 },
  seed,
  onFault: ({ what, vacantMs }) =>
    console.error(`${what} of the leader; the next after ${Math.round(vacantMs)} ms`),
})
print(report)
const broken = [...report.lost, ...report.doubled, ...report.wrong]
for (const violation of broken.slice(0, MOST_PRINTED)) console.error(violation)
process.exitCode = broken.length === 0 && report.quiet.p99Ms <= LATE_MS ? 0 : 1

function print(told: ScheduleReport): void {
  const rows: readonly (readonly [name: string, value: string | number])[] = [
    ['schedules', `${schedules}, every second, for ${minutes} min; seed ${seed}`],
    ['leaders frozen beyond their term / killed', `${told.freezes} / ${told.kills}`],
    ['longest time without a leader', `${Math.round(told.longestVacantMs)} ms`],
    ['ticks fired', told.overall.ticks],
    ['  lost', told.lost.length],
    ['  doubled', told.doubled.length],
    ['  wrong', told.wrong.length],
    ['outside of faults: ticks', told.quiet.ticks],
    ['  lateness p50 / p99 / max', show(told.quiet)],
    ['lateness of all, p50 / p99 / max', show(told.overall)],
    [
      'load of the machine, 1 / 5 / 15 min',
      loadavg()
        .map((load) => load.toFixed(1))
        .join(' / '),
    ],
  ]
  for (const [name, value] of rows) console.log(`${name.padEnd(46)}${value}`)
}

function show({ p50Ms, p99Ms, maxMs }: Lateness): string {
  return `${p50Ms} / ${p99Ms} / ${maxMs} ms`
}
