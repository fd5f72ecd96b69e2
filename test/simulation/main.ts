/**
 * `npm run simulate -- [--seeds 200] [--hours H] [--from 1] [--minutes 15]`: runs seeds until there are enough of them or
 * enough simulated hours, prints what happened, and exits 1 at the first violation. `--seed S` runs that one again.
 */
import { parseArgs } from 'node:util'
import { explainFailure, judge } from './judge.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string' },
    hours: { type: 'string' },
    from: { type: 'string', default: '1' },
    minutes: { type: 'string', default: '15' },
  },
})

const minutes = Number(values.minutes)
const from = Number(values.seed ?? values.from)
const hours = values.hours === undefined ? Infinity : Number(values.hours)
const seeds =
  values.seed !== undefined
    ? 1
    : values.seeds === undefined
      ? hours === Infinity
        ? 200
        : Infinity
      : Number(values.seeds)
if (![minutes, from, hours, seeds].every((number) => number > 0)) {
  console.error(
    'usage: npm run simulate -- [--seeds 200] [--hours H] [--from 1] [--minutes 15] | --seed S [--minutes 15]',
  )
  process.exit(2)
}

// Thousands of errors are thrown on purpose, and nobody reads where.
Error.stackTraceLimit = 0

const totals = { seeds: 0, simulatedMs: 0, events: 0, recorded: 0, staleSettles: 0 }
const faults = new Map<string, number>()
const before = { ms: performance.now(), cpu: process.cpuUsage() }

let failure: string | undefined
for (let seed = from; totals.seeds < seeds && totals.simulatedMs < hours * 3_600_000; seed++) {
  failure = await runOne(seed)
  if (failure !== undefined) break
  if (totals.seeds % 100 === 0) console.error(`${totals.seeds} seeds, ${hoursOf(totals.simulatedMs)} h`)
}
report()
if (failure !== undefined) {
  console.error(failure)
  process.exit(1)
}

/** What is wrong, if anything. */
async function runOne(seed: number): Promise<string | undefined> {
  let judged
  try {
    judged = await judge(seed, minutes)
  } catch (error) {
    // A store that trips over its own assertions has told more than the checker could.
    return `seed ${seed} broke 1 rules; the run itself failed.\nassertion: ${String(error)}`
  }
  const { verdict } = judged
  if (verdict.violationCount > 0) return explainFailure(judged)
  totals.seeds++
  totals.simulatedMs += judged.simulatedMs
  totals.events += judged.events
  totals.recorded += judged.recorded
  totals.staleSettles += verdict.counted.staleSettlesRefused
  for (const [kind, count] of Object.entries(verdict.counted.faults))
    faults.set(kind, (faults.get(kind) ?? 0) + count)
  return undefined
}

function report(): void {
  const seconds = (performance.now() - before.ms) / 1_000
  const cpu = process.cpuUsage(before.cpu)
  const cpuSeconds = (cpu.user + cpu.system) / 1e6
  const number = (value: number): string => Math.round(value).toLocaleString('en')
  console.log(`seeds             ${from} to ${from + totals.seeds - 1}, ${minutes} min each`)
  console.log(`simulated time    ${hoursOf(totals.simulatedMs)} h`)
  console.log(`events            ${number(totals.events)} took place (timers and messages)`)
  console.log(`history           ${number(totals.recorded)} events recorded and checked`)
  console.log(`faults            ${number([...faults.values()].reduce((sum, count) => sum + count, 0))}`)
  for (const [kind, count] of [...faults].sort((a, b) => b[1] - a[1]))
    console.log(`  ${kind.padEnd(16)}${number(count)}`)
  console.log(`stale settles     ${number(totals.staleSettles)} refused`)
  console.log(`violations        ${failure === undefined ? '0' : 'see below'}`)
  console.log(
    `speed             ${number(totals.events / seconds)} events/s, ${number(totals.events / cpuSeconds)} a second of CPU`,
  )
}

function hoursOf(ms: number): string {
  return (ms / 3_600_000).toFixed(1)
}
