/**
 * `npm run bench -- --store memory [--rounds 5] [--seconds 10] [--json]`: measures, prints a table, writes JSON into
 * bench/results/, and exits 1 where a bar is missed. Each round runs in a process of its own; sides that are compared
 * take turns, so that a noisy machine hits both.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { memoryBench } from './memory/bench.ts'
import { printTable, type Row } from './report.ts'

const USAGE = 'usage: npm run bench -- --store memory [--rounds 5] [--seconds 10] [--json]'

const { values } = parseArgs({
  options: {
    store: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '10' },
    json: { type: 'boolean', default: false },
  },
})

const rounds = Number(values.rounds)
const seconds = Number(values.seconds)
if (values.store !== 'memory' || !(rounds >= 1) || !(seconds > 0)) {
  console.error(USAGE)
  process.exit(2)
}

const rows: readonly Row[] = await memoryBench({ rounds, seconds, say: (text) => console.error(text) })
mkdirSync(new URL('results/', import.meta.url), { recursive: true })
const result = {
  store: values.store,
  at: new Date().toISOString(),
  node: process.version,
  rounds,
  seconds,
  rows,
}
writeFileSync(
  new URL(`results/${values.store}.json`, import.meta.url),
  `${JSON.stringify(result, null, 2)}\n`,
)
if (values.json) console.log(JSON.stringify(result))
else console.log(printTable(rows))
process.exitCode = rows.some((row) => row.met === false) ? 1 : 0
