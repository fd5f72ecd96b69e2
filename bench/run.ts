/**
 * `npm run bench -- --store memory|sqlite|postgres|redis …`, or `--features`: measures, prints tables, writes JSON (and a plot) into
 * bench/results/, and exits 1 where a bar is missed. Each run is in processes of its own; sides that are compared take turns, so that a noisy
 * machine hits both.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { hold, type ContestOptions, type ContestResult } from './contest/contest.ts'
import { featuresBench } from './features/bench.ts'
import { bigBench } from './big/bench.ts'
import { memoryBench } from './memory/bench.ts'
import { plot } from './plot.ts'
import { POSTGRES } from './postgres/contest.ts'
import { REDIS } from './redis/contest.ts'
import { printFigures, printTable, type Row } from './report.ts'
import { SQLITE } from './sqlite/contest.ts'

const USAGE = `usage: npm run bench -- --store memory [--rounds 5] [--seconds 10] [--json]
       npm run bench -- --store postgres [--peers graphile-worker,pg-boss,bullmq-pg] [--rounds 5] [--only drain,…]
                        [--against build] [--seconds 60] [--minutes 10] [--quick] [--profile folder] [--json]
       npm run bench -- --store redis [--peers bullmq,bee-queue] …as with postgres
       npm run bench -- --store sqlite [--peers plainjob] …as with postgres
       npm run bench -- --features [--rounds 5] [--only memory,embedded,postgres,redis] [--json]
       npm run bench -- --big --store postgres|redis [--finished 10000000] [--waiting 1000000] [--against build] [--quick]`

const { values } = parseArgs({
  options: {
    store: { type: 'string' },
    features: { type: 'boolean', default: false },
    big: { type: 'boolean', default: false },
    finished: { type: 'string' },
    waiting: { type: 'string' },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    minutes: { type: 'string' },
    against: { type: 'string' },
    peers: { type: 'string', default: '' },
    only: { type: 'string', default: '' },
    quick: { type: 'boolean', default: false },
    profile: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
})

const say = (text: string): void => console.error(text)
const rounds = Number(values.rounds ?? (values.quick ? 1 : 5))
const [seconds, minutes] = [values.seconds, values.minutes].map((text) =>
  text === undefined ? undefined : Number(text),
)

// An exit ends children and servers, see there; without this, a signal would not be one.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130))

if (![rounds, seconds, minutes].every((number) => number === undefined || number > 0))
  refuse('--rounds, --seconds and --minutes are numbers above zero.')
else if (values.features) await features()
else if (values.big) await big()
else if (values.store === 'memory') await memory()
else if (values.store === 'postgres') await contest('postgres', (options) => hold(POSTGRES, options))
else if (values.store === 'redis') await contest('redis', (options) => hold(REDIS, options))
else if (values.store === 'sqlite') await contest('sqlite', (options) => hold(SQLITE, options))
else refuse('--store is memory, sqlite, postgres or redis; or --features.')

function refuse(why: string): void {
  say(`${why}\n${USAGE}`)
  process.exitCode = 2
}

async function memory(): Promise<void> {
  const window = seconds ?? 10
  const rows = await memoryBench({ rounds, seconds: window, say })
  finish('memory', { seconds: window, rows }, printTable(rows), rows)
}

async function big(): Promise<void> {
  const { store = '', quick, against } = values
  const [finished, waiting] = [values.finished, values.waiting].map((text) =>
    text === undefined ? undefined : Number(text),
  )
  const result = await bigBench({ store, quick, against, finished, waiting, say })
  if (typeof result === 'string') return refuse(result)
  const tables = [printTable(result.rows), result.failures.join('\n')].filter((text) => text !== '')
  const isWhole = !quick && finished === undefined && waiting === undefined
  finish(`big-${store}${isWhole ? '' : '-part'}`, result, tables.join('\n\n'), isWhole ? result.rows : [])
}

async function features(): Promise<void> {
  const rows = await featuresBench({ rounds, only: values.only, say })
  if (typeof rows === 'string') return refuse(rows)
  finish(values.only === '' ? 'features' : 'features-part', { rows }, printTable(rows), rows)
}

async function contest(
  store: string,
  held: (options: ContestOptions) => Promise<ContestResult | string>,
): Promise<void> {
  const { peers, only, quick, profile, against } = values
  const result = await held({ rounds, peers, only, quick, seconds, minutes, profile, against, say })
  if (typeof result === 'string') return refuse(result)
  const { figures, rows, notes, failures } = result
  const settings = Object.entries(result.settings).map(([who, how]) => `${who}: ${JSON.stringify(how)}`)
  const tables = [
    settings.join('\n'),
    printFigures(figures),
    printTable(rows),
    notes.join('\n'),
    failures.join('\n'),
  ]
  // What was run in small or in part must not pass for the real thing.
  const name = quick || only !== '' ? `${store}-part` : store
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
