/**
 * What features cost beside the plain way, on every store: batch handlers beside single ones, publishing beside
 * `enqueueMany` of as many jobs, and a replay of 100,000 dead letters. The two ways take turns.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { ContestServer } from '../contest/server.ts'
import { PostgresBenchServer } from '../postgres/server.ts'
import { REPLAY_PER_SECOND } from '../redis/bars.ts'
import { RedisBenchServer } from '../redis/server.ts'
import { row, type Row } from '../report.ts'
import type { Measured, Way } from './child.ts'

const run = promisify(execFile)
const CHILD = fileURLToPath(new URL('child.ts', import.meta.url))

export interface FeaturesOptions {
  readonly rounds: number
  /** Names of stores, or `store:replay` and the like; empty means all. */
  readonly only: string
  readonly say: (text: string) => void
}

/** What takes turns within a round. */
const TURNS: readonly (readonly Way[])[] = [['single', 'batch'], ['many', 'publish'], ['replay']]
const REPLAYED = 100_000

const REPLAY_BAR = {
  text: `≥ ${REPLAY_PER_SECOND} jobs/s`,
  met: (perSecond: number): boolean => perSecond >= REPLAY_PER_SECOND,
}

/** Where a run gets a store of its own. */
interface Site {
  place(): Promise<{ readonly url: string; leave(): Promise<void> }>
  close(): Promise<void>
}

const SITES: Readonly<Record<string, () => Promise<Site>>> = {
  memory: () => Promise.resolve({ place: () => place('memory:'), close: () => Promise.resolve() }),
  embedded: () =>
    Promise.resolve({
      place: () => {
        const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
        return place(`file:${folder}/data`, () => rmSync(folder, { recursive: true, force: true }))
      },
      close: () => Promise.resolve(),
    }),
  postgres: async () => onServer(await PostgresBenchServer.start()),
  redis: async () => onServer(await RedisBenchServer.start()),
}

function onServer(server: ContestServer): Site {
  return {
    async place() {
      const url = await server.createPlace()
      return { url, leave: () => server.dropPlace(url) }
    },
    close: () => server.dispose(),
  }
}

function place(url: string, leave: () => void = () => undefined): ReturnType<Site['place']> {
  return Promise.resolve({ url, leave: async () => leave() })
}

export async function featuresBench({ rounds, only, say }: FeaturesOptions): Promise<Row[] | string> {
  const wanted = only === '' ? Object.keys(SITES) : only.split(',')
  const rows: Row[] = []
  for (const one of wanted) {
    const [name = '', part] = one.split(':')
    const start = SITES[name]
    if (start === undefined) return `There is no store "${name}" here; use ${Object.keys(SITES).join(', ')}.`
    const turns = part === undefined ? TURNS : TURNS.filter((ways) => ways.some((way) => way === part))
    if (turns.length === 0) return `There is no "${part}" here; use ${TURNS.flat().join(', ')}.`
    const site = await start()
    try {
      rows.push(...(await measure({ name, site, turns, rounds, say })))
    } finally {
      await site.close()
    }
  }
  return rows
}

interface Measuring {
  readonly name: string
  readonly site: Site
  readonly turns: readonly (readonly Way[])[]
  readonly rounds: number
  readonly say: (text: string) => void
}

async function measure({ name, site, turns, rounds, say }: Measuring): Promise<Row[]> {
  // A smaller store has fewer jobs, so that a run takes seconds everywhere.
  const jobs = name === 'embedded' ? 20_000 : name === 'memory' ? 400_000 : 100_000
  const found: Record<Way, Measured[]> = { single: [], batch: [], many: [], publish: [], replay: [] }
  const once = async (way: Way, size: number): Promise<void> => {
    const place = await site.place()
    try {
      found[way].push(await child(way, place.url, size))
    } finally {
      await place.leave()
    }
  }
  for (let round = 1; round <= rounds; round++) {
    say(`${name}: round ${round} of ${rounds}`)
    for (const ways of turns)
      for (const way of round % 2 === 1 ? ways : ways.toReversed())
        await once(way, way === 'replay' ? Math.min(jobs, REPLAYED) : jobs)
  }
  const rates = (way: Way): number[] => found[way].map(({ perSecond }) => perSecond)
  const ratios = (a: Way, b: Way): number[] =>
    rates(a).map((rate, index) => rate / (rates(b)[index] ?? Number.NaN))
  const all = [
    row(`${name}: drain, one job a call`, 'jobs/s', rates('single')),
    row(`${name}: drain, 100 jobs a call`, 'jobs/s', rates('batch')),
    row(`${name}: batch / single`, '×', ratios('batch', 'single'), {
      text: '≥ 0.9 ×',
      met: (ratio) => ratio >= 0.9,
    }),
    row(`${name}: enqueueMany`, 'jobs/s', rates('many')),
    row(`${name}: publish to 10 subscribers`, 'jobs/s', rates('publish')),
    row(`${name}: publish / enqueueMany`, '×', ratios('publish', 'many'), {
      text: '≥ 0.8 ×',
      met: (ratio) => ratio >= 0.8,
    }),
    row(
      `${name}: replay of dead letters`,
      'jobs/s',
      rates('replay'),
      ...(name === 'redis' ? [REPLAY_BAR] : []),
    ),
    row(
      `${name}: replay, more memory`,
      'MB',
      found.replay.map(({ moreMb }) => moreMb),
      // In memory the jobs themselves are in the process.
      ...(name === 'memory' || name === 'embedded'
        ? []
        : [{ text: '≤ 64 MB', met: (mb: number): boolean => mb <= 64 }]),
    ),
  ]
  return all.filter(({ rounds: values }) => values.length > 0)
}

/** A fresh process for each figure: no heap and no optimised code left over from the one before. */
async function child(way: Way, url: string, jobs: number): Promise<Measured> {
  const { stdout } = await run(
    process.execPath,
    ['--expose-gc', '--import', 'tsx', CHILD, way, url, String(jobs)],
    {
      timeout: 600_000,
    },
  )
  return JSON.parse(stdout) as Measured
}
