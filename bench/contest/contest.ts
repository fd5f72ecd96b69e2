/** Holdfast on a server beside its peers, and against itself. Contenders take turns within each round. */
import { execFileSync } from 'node:child_process'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { install } from '../install.ts'
import type { Row } from '../report.ts'
import { judge, type Bar } from './bars.ts'
import { entriesOf, type FigureKinds } from './figures.ts'
import { Measured, type MeasuredRow } from './measured.ts'
import { otherBuild } from './other-build.ts'
import { OTHER, type Contender } from './protocol.ts'
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
  readonly settings: Readonly<Record<'holdfast' | Peer, object>>
  /** Set-ups of Holdfast besides its own. */
  readonly variants?: readonly Contender<never>[]
  /** Part of a backlog for those who are too slow for all of it. */
  readonly shares?: Partial<Readonly<Record<Peer, number>>>
  readonly serverSettings: object
  readonly startServer: (node: string) => Promise<Server>
  /** The path of what its children run. */
  readonly main: string
  /** In the order of the tables. */
  readonly figures: FigureKinds<Figure>
  readonly bars: readonly Bar<Figure, Peer>[]
  /** In the order they run within a round. */
  readonly scenarios: readonly Scenario<Figure, Server, Sizes>[]
  readonly sizes: (wanted: WantedSizes) => Sizes
}

export interface WantedSizes {
  readonly quick: boolean
  /** What `--seconds` and `--minutes` say, if they are given. */
  readonly seconds: number | undefined
  readonly minutes: number | undefined
}

export interface ContestOptions extends WantedSizes {
  readonly rounds: number
  /** What `--peers` names: none where it is empty. */
  readonly peers: string
  /** What `--only` names: all scenarios where it is empty. */
  readonly only: string
  /** What `--against` names: another build of Holdfast. */
  readonly against: string | undefined
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
  /** What figures can't say, one line each. */
  readonly notes: readonly string[]
  /** Runs that did not come to their end, one line each. */
  readonly failures: readonly string[]
}

/** What `npm run bench` has just built. */
const BUILT = fileURLToPath(new URL('../../dist/index.js', import.meta.url))

/** Or what is wrong with the options. */
export async function hold<
  Figure extends string,
  Peer extends string,
  Server extends ContestServer,
  Sizes extends CommonSizes,
>(contest: Contest<Figure, Peer, Server, Sizes>, options: ContestOptions): Promise<ContestResult | string> {
  const { rounds, profile, say } = options
  const peers = readList(options.peers, 'peer', new Map(contest.peers.map((peer) => [peer, peer])))
  if (typeof peers === 'string') return peers
  const scenarios = readScenarios(options.only, contest.scenarios)
  if (typeof scenarios === 'string') return scenarios
  const other = options.against === undefined ? undefined : otherBuild(options.against)
  const node = install(say)
  const server = await contest.startServer(node)
  try {
    const builds = new Map<Contender, string>(
      (['holdfast', ...(contest.variants ?? [])] as const).map((who) => [who, BUILT]),
    )
    if (other !== undefined) builds.set(OTHER, other)
    const measured = new Measured(contest.figures, [...builds.keys()] as Contender<never>[], peers)
    const failures: string[] = []
    const notes: string[] = []
    const flags = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${resolve(profile)}`]
    const parts = {
      server,
      sizes: contest.sizes(options),
      program: { node, flags, main: contest.main },
      builds,
      shares: new Map<Contender, number>(Object.entries(contest.shares ?? {})),
    }
    for (let round = 0; round < rounds; round++) {
      for (const scenario of scenarios.filter(({ maxRounds = Infinity }) => round < maxRounds)) {
        say(`round ${round + 1} of ${rounds}: ${scenario.name}`)
        failures.push(...(await turn({ ...parts, round, scenario, measured, notes, say })))
      }
    }
    return {
      node: execFileSync(node, ['--version'], { encoding: 'utf8' }).trim(),
      server: { version: server.version, settings: contest.serverSettings },
      settings: Object.fromEntries(
        (['holdfast', ...peers] as const).map((who) => [who, contest.settings[who]]),
      ),
      figures: measured.rows(),
      rows: judge(contest.bars, measured),
      notes,
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
> extends Omit<StageParts<Server, Sizes>, 'note'> {
  readonly round: number
  readonly scenario: Scenario<Figure, Server, Sizes>
  readonly measured: Measured<Figure, Peer>
  readonly notes: string[]
  readonly say: (text: string) => void
}

/** One scenario, contender by contender. A run that fails costs its figures, not those of an hour. */
async function turn<
  Figure extends string,
  Peer extends string,
  Server extends ContestServer,
  Sizes extends CommonSizes,
>({ round, scenario, measured, notes, say, ...parts }: Turn<Figure, Peer, Server, Sizes>): Promise<string[]> {
  const { peers } = scenario
  const contenders = measured.contenders.filter(
    (who) =>
      who === 'holdfast' || who === OTHER || (typeof peers === 'boolean' ? peers : peers.includes(who)),
  )
  const failures: string[] = []
  for (const contender of contenders) {
    try {
      const note = (text: string): void => {
        say(`    ${text}`)
        notes.push(`round ${round + 1}: ${scenario.name} of ${contender}: ${text}`)
      }
      const figures = await Stage.use({ ...parts, note }, contender, (stage) => scenario.run(stage))
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

/** In our order. */
function readScenarios<
  Known extends { readonly name: string; readonly group?: string; readonly onRequest?: boolean },
>(text: string, known: readonly Known[]): readonly Known[] | string {
  const names = new Set(known.flatMap(({ name, group }) => (group === undefined ? [name] : [group, name])))
  const named = readList(text, 'scenario', new Map([...names].map((name) => [name, name])))
  if (typeof named === 'string') return named
  if (named.length === 0) return known.filter(({ onRequest }) => onRequest !== true)
  return known.filter(
    ({ name, group }) => named.includes(name) || (group !== undefined && named.includes(group)),
  )
}

function readList<T>(text: string, what: string, known: ReadonlyMap<string, T>): T[] | string {
  const names = text === '' ? [] : text.split(',')
  const unknown = names.find((name) => !known.has(name))
  if (unknown !== undefined) return `There is no ${what} "${unknown}". Use ${[...known.keys()].join(', ')}.`
  return names.flatMap((name) => known.get(name) ?? [])
}
