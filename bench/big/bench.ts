/** What an operator waits for when a store is full: counts, pages of lists, single jobs. */
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { otherBuild } from '../contest/other-build.ts'
import { OTHER } from '../contest/protocol.ts'
import type { ContestServer } from '../contest/server.ts'
import { PostgresBenchServer } from '../postgres/server.ts'
import { RedisBenchServer } from '../redis/server.ts'
import { median, percentile, row, type Row } from '../report.ts'
import type { Probed } from './probe.ts'

export interface BigOptions {
  readonly store: string
  /** How many jobs, where the store's own number is not wanted. */
  readonly finished: number | undefined
  readonly waiting: number | undefined
  readonly quick: boolean
  /** Another build to be asked, too, on a store that it fills itself. */
  readonly against: string | undefined
  readonly say: (text: string) => void
}

export interface BigResult {
  readonly finished: number
  readonly waiting: number
  readonly rows: readonly Row[]
  readonly failures: readonly string[]
}

const QUEUES_P95_MS = 10
const LIST_MS = 100
const GET_P95_MS = 5

interface Site {
  readonly start: () => Promise<ContestServer>
  readonly finished: number
  readonly waiting: number
}

const SITES: Readonly<Record<string, Site>> = {
  postgres: { start: () => PostgresBenchServer.start(), finished: 10_000_000, waiting: 1_000_000 },
  redis: { start: () => RedisBenchServer.start(), finished: 1_000_000, waiting: 1_000_000 },
}
const QUICK = { finished: 100_000, waiting: 20_000 } as const

export async function bigBench(options: BigOptions): Promise<BigResult | string> {
  const { store, quick, against, say } = options
  const site = SITES[store]
  if (site === undefined) return `There is no store "${store}" here; use ${Object.keys(SITES).join(', ')}.`
  const { finished, waiting } = { ...(quick ? QUICK : site), ...given(options) }
  const builds = [['holdfast', fileURLToPath(new URL('../../dist/index.js', import.meta.url))]]
  if (against !== undefined) builds.push([OTHER, otherBuild(against)])
  const rows: Row[] = []
  const failures: string[] = []
  const server = await site.start()
  try {
    for (const [who = '', path = ''] of builds) {
      const build = pathToFileURL(path).href
      const url = await server.createPlace()
      try {
        say(`${who}: building ${finished} finished and ${waiting} waiting jobs`)
        const since = performance.now()
        const ids = await child('build.ts', [build, url, String(finished), String(waiting)])
        say(`${who}: built in ${Math.round((performance.now() - since) / 1_000)} s; asking`)
        await server.calmDown(url)
        const probed = JSON.parse(await child('probe.ts', [build, url], ids)) as Probed
        rows.push(...rowsOf(who, probed))
        failures.push(...probed.failures.map((failure) => `${who}: ${failure}`))
      } finally {
        await server.dropPlace(url)
      }
    }
  } finally {
    await server.dispose()
  }
  return { finished, waiting, rows, failures }
}

function given({ finished, waiting }: BigOptions): Partial<Record<'finished' | 'waiting', number>> {
  return { ...(finished === undefined ? {} : { finished }), ...(waiting === undefined ? {} : { waiting }) }
}

/** The other build is shown, not judged. */
function rowsOf(who: string, { queuesMs, getMs, listMs }: Probed): Row[] {
  const limited = (what: string, value: number, atMost: number, rounds: readonly number[] = [value]): Row => {
    const shown = row(`${who}: ${what}`, 'ms', [value])
    const judged = who === OTHER ? {} : { bar: `≤ ${atMost} ms`, met: value <= atMost }
    return { ...shown, rounds, ...judged }
  }
  return [
    row(`${who}: queues() p50`, 'ms', [percentile(queuesMs, 50)]),
    limited('queues() p95', percentile(queuesMs, 95), QUEUES_P95_MS, queuesMs),
    row(`${who}: get p50`, 'ms', [percentile(getMs, 50)]),
    limited('get p95', percentile(getMs, 95), GET_P95_MS, getMs),
    ...Object.entries(listMs).map(([what, tookMs]) =>
      limited(
        `list, ${what}: slowest page (median ${median(tookMs).toFixed(1)})`,
        Math.max(...tookMs),
        LIST_MS,
        tookMs,
      ),
    ),
  ]
}

/** Resolves to what it printed. */
async function child(program: string, args: readonly string[], input = ''): Promise<string> {
  const path = fileURLToPath(new URL(program, import.meta.url))
  const running = spawn(process.execPath, ['--import', 'tsx', path, ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const end = (): void => void running.kill('SIGKILL')
  process.on('exit', end)
  try {
    running.stdin.end(input)
    const ended = new Promise<number | null>((resolve, reject) => {
      running.on('error', reject)
      running.on('close', resolve)
    })
    const printed = await text(running.stdout)
    const code = await ended
    if (code !== 0) throw new Error(`${program} ended with ${code}.`)
    return printed
  } finally {
    process.off('exit', end)
  }
}
