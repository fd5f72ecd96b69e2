/** Holdfast on a server beside its peers, and against itself. Contenders take turns within each round. */
import { execFileSync } from 'node:child_process'
import { resolve } from 'node:path'
import { install } from '../install.ts'
import type { Row } from '../report.ts'
import { judge, type Bar } from './bars.ts'
import { entriesOf, type FigureKinds } from './figures.ts'
import { Measured, type MeasuredRow } from './measured.ts'
import type { Contender } from './protocol.ts'
import type { Scenario } from './scenarios/scenario.ts'
import type { ContestServer } from './server.ts'
import type { CommonSizes } from './sizes.ts'
import { Stage, type StageParts } from './stage.ts'

/** All that is a store's own. */
export interface Contest<
  Figure extends string,
  Peer extends string,
  Server extends ContestServer,
  Sizes extends CommonSizes,
> {
  readonly peers: readonly Peer[]
  /** How each contender is set up, for the record. */
  readonly settings: Readonly<Record<Contender<Peer>, object>>
  readonly serverSettings: object
  readonly startServer: () => Promise<Server>
  /** The path of what its children run. */
  readonly main: string
  /** In the order of the tables. */
  readonly figures: FigureKinds<Figure>
  readonly bars: readonly Bar<Figure, Peer>[]
  /** In the order they run within a round. */
  readonly scenarios: readonly Scenario<Figure, Server, Sizes>[]
  readonly sizes: { readonly full: Sizes; readonly quick: Sizes }
}

export interface ContestOptions {
  readonly rounds: number
  /** What `--peers` names: none where it is empty. */
  readonly peers: string
  /** What `--only` names: all scenarios where it is empty. */
  readonly only: string
  readonly quick: boolean
  /** Where the children leave their CPU profiles, if they shall. */
  readonly profile: string | undefined
  readonly say: (text: string) => void
}

export interface ContestResult {
  /** The version that the contenders ran on. */
  readonly node: string
  readonly server: { readonly version: string; readonly settings: object }
  readonly settings: object
  readonly figures: readonly MeasuredRow[]
  readonly rows: readonly Row[]
  /** Runs that did not come to their end, one line each. */
  readonly failures: readonly string[]
}

/** Or what is wrong with the options. */
export async function hold<
  Figure extends string,
  Peer extends string,
  Server extends ContestServer,
  Sizes extends CommonSizes,
>(contest: Contest<Figure, Peer, Server, Sizes>, options: ContestOptions): Promise<ContestResult | string> {
  const { rounds, quick, profile, say } = options
  const peers = readList(options.peers, 'peer', new Map(contest.peers.map((peer) => [peer, peer])))
  if (typeof peers === 'string') return peers
  const scenarios = readScenarios(options.only, contest.scenarios)
  if (typeof scenarios === 'string') return scenarios
  const node = install(say)
  const server = await contest.startServer()
  try {
    const measured = new Measured(contest.figures, peers)
    const failures: string[] = []
    const flags = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${resolve(profile)}`]
    const sizes = quick ? contest.sizes.quick : contest.sizes.full
    const parts = { server, sizes, program: { node, flags, main: contest.main } }
    for (let round = 0; round < rounds; round++) {
      for (const scenario of scenarios.filter(({ maxRounds = Infinity }) => round < maxRounds)) {
        say(`round ${round + 1} of ${rounds}: ${scenario.name}`)
        failures.push(...(await turn({ ...parts, round, scenario, measured, say })))
      }
    }
    return {
      node: execFileSync(node, ['--version'], { encoding: 'utf8' }).trim(),
      server: { version: server.version, settings: contest.serverSettings },
      settings: Object.fromEntries(contendersOf(peers).map((who) => [who, contest.settings[who]])),
      figures: measured.rows(),
      rows: judge(contest.bars, measured),
      failures,
    }
  } finally {
    await server.dispose()
  }
}

interface Turn<
  Figure extends string,
  Peer extends string,
  Server extends ContestServer,
  Sizes extends CommonSizes,
> extends StageParts<Server, Sizes> {
  readonly round: number
  readonly scenario: Scenario<Figure, Server, Sizes>
  readonly measured: Measured<Figure, Peer>
  readonly say: (text: string) => void
}

/** One scenario, contender by contender. A run that fails costs its figures, not those of an hour. */
async function turn<
  Figure extends string,
  Peer extends string,
  Server extends ContestServer,
  Sizes extends CommonSizes,
>({ round, scenario, measured, say, ...parts }: Turn<Figure, Peer, Server, Sizes>): Promise<string[]> {
  const contenders = scenario.peers ? contendersOf(measured.peers) : contendersOf<Peer>([])
  const failures: string[] = []
  for (const contender of contenders) {
    try {
      const figures = await Stage.use(parts, contender, (stage) => scenario.run(stage))
      measured.add(round, contender, figures)
      const values = entriesOf(figures).map(([name, value]) => `${name} ${Number(value.toPrecision(3))}`)
      say(`  ${contender}: ${values.join(', ')}`)
    } catch (error) {
      say(`  ${contender}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
      failures.push(`round ${round + 1}: ${scenario.name} of ${contender} failed`)
    }
  }
  return failures
}

function contendersOf<Peer extends string>(peers: readonly Peer[]): readonly Contender<Peer>[] {
  return ['holdfast', ...peers]
}

/** In our order. */
function readScenarios<Known extends { readonly name: string }>(
  text: string,
  known: readonly Known[],
): readonly Known[] | string {
  const named = readList(text, 'scenario', new Map(known.map((scenario) => [scenario.name, scenario])))
  if (typeof named === 'string') return named
  return named.length === 0 ? known : known.filter((scenario) => named.includes(scenario))
}

function readList<T>(text: string, what: string, known: ReadonlyMap<string, T>): T[] | string {
  const names = text === '' ? [] : text.split(',')
  const unknown = names.find((name) => !known.has(name))
  if (unknown !== undefined) return `There is no ${what} "${unknown}". Use ${[...known.keys()].join(', ')}.`
  return names.flatMap((name) => known.get(name) ?? [])
}
