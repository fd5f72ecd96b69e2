/**
 * `npm run bench -- --store memory|postgres …`: measures, prints tables, writes JSON (and a plot) into bench/results/, and
 * exits 1 where a bar is missed. Each run is in processes of its own; sides that are compared take turns, so that a noisy
 * machine hits both.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { memoryBench } from './memory/bench.ts'
import { plot } from './plot.ts'
import { postgresBench, readPeers, readScenarios } from './postgres/bench.ts'
import { printFigures, printTable, type Row } from './report.ts'

const USAGE = `usage: npm run bench -- --store memory [--rounds 5] [--seconds 10] [--json]
       npm run bench -- --store postgres [--peers graphile-worker,pg-boss] [--rounds 5] [--only drain,…] [--quick]
                        [--profile folder] [--json]`

const { values } = parseArgs({
  options: {
    store: { type: 'string' },
    rounds: { type: 'string' },
    seconds: { type: 'string', default: '10' },
    peers: { type: 'string', default: '' },
    only: { type: 'string', default: '' },
    quick: { type: 'boolean', default: false },
    profile: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
})

const say = (text: string): void => console.error(text)
const rounds = Number(values.rounds ?? (values.quick ? 1 : 5))
const seconds = Number(values.seconds)

// An exit ends children and servers, see there; without this, a signal would not be one.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130))

if (!(rounds >= 1) || !(seconds > 0)) refuse('--rounds and --seconds are numbers above zero.')
else if (values.store === 'memory') await memory()
else if (values.store === 'postgres') await postgres()
else refuse('--store is memory or postgres.')

function refuse(why: string): void {
  say(`${why}\n${USAGE}`)
  process.exitCode = 2
}

async function memory(): Promise<void> {
  const rows = await memoryBench({ rounds, seconds, say })
  finish('memory', { seconds, rows }, printTable(rows), rows)
}

async function postgres(): Promise<void> {
  const { only, quick, profile } = values
  const [peers, scenarios] = [readPeers(values.peers), readScenarios(only)]
  if (typeof peers === 'string') return refuse(peers)
  if (typeof scenarios === 'string') return refuse(scenarios)
  const result = await postgresBench({ rounds, peers, scenarios, quick, profile, say })
  const { figures, rows, failures } = result
  const settings = Object.entries(result.settings).map(([who, how]) => `${who}: ${JSON.stringify(how)}`)
  const tables = [settings.join('\n'), printFigures(figures), printTable(rows), failures.join('\n')]
  // What was run in small or in part must not pass for the real thing.
  const name = quick || only !== '' ? 'postgres-part' : 'postgres'
  finish(name, { quick, ...result }, tables.filter((text) => text !== '').join('\n\n'), quick ? [] : rows)
  writeFileSync(fileOf(`${name}.svg`), plot(figures))
  if (failures.length > 0) process.exitCode = 1
}

function finish(name: string, found: object, tables: string, judged: readonly Row[]): void {
  const machine = { cpu: cpus()[0]?.model ?? '', cores: cpus().length }
  const at = new Date().toISOString()
  const result = { store: values.store, at, node: process.version, machine, rounds, ...found }
  mkdirSync(fileOf(''), { recursive: true })
  writeFileSync(fileOf(`${name}.json`), `${JSON.stringify(result, null, 2)}\n`)
  console.log(values.json ? JSON.stringify(result) : tables)
  process.exitCode = judged.some((row) => row.met === false) ? 1 : 0
}

function fileOf(name: string): URL {
  return new URL(`results/${name}`, import.meta.url)
}
