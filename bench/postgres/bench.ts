/** Holdfast on PostgreSQL beside its peers, and against itself. Contenders take turns within each round. */
import { execFileSync } from 'node:child_process'
import { resolve } from 'node:path'
import { install } from '../install.ts'
import type { Row } from '../report.ts'
import { judge } from './bars.ts'
import { Measured, type MeasuredRow } from './measured.ts'
import { SCENARIOS } from './scenarios/index.ts'
import type { Scenario } from './scenarios/scenario.ts'
import { BenchServer, SERVER_SETTINGS } from './server.ts'
import { PEERS, SETTINGS, type Contender, type Peer } from './settings.ts'
import { FULL, QUICK } from './sizes.ts'
import { Stage, type StageParts } from './stage.ts'

export interface PostgresBenchOptions {
  readonly rounds: number
  readonly peers: readonly Peer[]
  readonly scenarios: readonly Scenario[]
  readonly quick: boolean
  /** Where the children leave their CPU profiles, if they shall. */
  readonly profile: string | undefined
  readonly say: (text: string) => void
}

export interface PostgresBenchResult {
  /** The version that the contenders ran on. */
  readonly node: string
  readonly server: { readonly version: string; readonly settings: object }
  readonly settings: object
  readonly figures: readonly MeasuredRow[]
  readonly rows: readonly Row[]
  /** Runs that did not come to their end, one line each. */
  readonly failures: readonly string[]
}

export async function postgresBench(options: PostgresBenchOptions): Promise<PostgresBenchResult> {
  const { peers, scenarios, quick, profile, say } = options
  const node = install(say)
  const server = await BenchServer.start()
  try {
    const measured = new Measured(peers)
    const failures: string[] = []
    const flags = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${resolve(profile)}`]
    const parts: StageParts = { server, node, flags, sizes: quick ? QUICK : FULL }
    for (let round = 0; round < options.rounds; round++) {
      for (const scenario of scenarios.filter(({ maxRounds = Infinity }) => round < maxRounds)) {
        say(`round ${round + 1} of ${options.rounds}: ${scenario.name}`)
        failures.push(...(await turn({ ...parts, round, scenario, measured, say })))
      }
    }
    const contenders: readonly Contender[] = ['holdfast', ...peers]
    return {
      node: execFileSync(node, ['--version'], { encoding: 'utf8' }).trim(),
      server: { version: server.version, settings: SERVER_SETTINGS },
      settings: Object.fromEntries(contenders.map((who) => [who, SETTINGS[who]])),
      figures: measured.rows(),
      rows: judge(measured),
      failures,
    }
  } finally {
    await server.dispose()
  }
}

interface Turn extends StageParts {
  readonly round: number
  readonly scenario: Scenario
  readonly measured: Measured
  readonly say: (text: string) => void
}

/** One scenario, contender by contender. A run that fails costs its figures, not those of an hour. */
async function turn({ round, scenario, measured, say, ...parts }: Turn): Promise<string[]> {
  const contenders: readonly Contender[] = scenario.peers ? ['holdfast', ...measured.peers] : ['holdfast']
  const failures: string[] = []
  for (const contender of contenders) {
    try {
      const figures = await Stage.use(parts, contender, (stage) => scenario.run(stage))
      measured.add(round, contender, figures)
      const values = Object.entries(figures).map(([name, value]) => `${name} ${Number(value.toPrecision(3))}`)
      say(`  ${contender}: ${values.join(', ')}`)
    } catch (error) {
      say(`  ${contender}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
      failures.push(`round ${round + 1}: ${scenario.name} of ${contender} failed`)
    }
  }
  return failures
}

/** What `--peers` names, or what is wrong with it. */
export function readPeers(text: string): Peer[] | string {
  return readList(text, 'peer', new Map(PEERS.map((peer) => [peer, peer])))
}

/** What `--only` names, in our order; all where it names none. Or what is wrong with it. */
export function readScenarios(text: string): readonly Scenario[] | string {
  const named = readList(text, 'scenario', new Map(SCENARIOS.map((scenario) => [scenario.name, scenario])))
  if (typeof named === 'string') return named
  return named.length === 0 ? SCENARIOS : SCENARIOS.filter((scenario) => named.includes(scenario))
}

function readList<T>(text: string, what: string, known: ReadonlyMap<string, T>): T[] | string {
  const names = text === '' ? [] : text.split(',')
  const unknown = names.find((name) => !known.has(name))
  if (unknown !== undefined) return `There is no ${what} "${unknown}". Use ${[...known.keys()].join(', ')}.`
  return names.flatMap((name) => known.get(name) ?? [])
}
