/**
 * Asks a big store what an operator asks, over and over, and prints how long each answer took as JSON. Runs in a process
 * of its own: `probe.ts <index.js of Holdfast> <url>`, with the sampled ids on the standard input.
 */
import { text } from 'node:stream/consumers'
import type * as Library from 'holdfast'
import type * as PostgresLibrary from 'holdfast/postgres'
import type * as RedisLibrary from 'holdfast/redis'
import type { JobFilter, JobId, Store } from 'holdfast/store'
import { NAMES, QUEUES, RARE, type SampledIds } from './data.ts'

/** Milliseconds of each call, by what was asked. */
export interface Probed {
  readonly queuesMs: readonly number[]
  readonly getMs: readonly number[]
  readonly listMs: Readonly<Record<string, readonly number[]>>
  /** Calls that failed, as what was asked and the message. */
  readonly failures: readonly string[]
}

const CALLS = 200
const PAGE = 100
const PAGES_IN_A_ROW = 3
/** A filter that answers slowly is not asked for longer than this. */
const PATIENCE_MS = 60_000

const [build = '', url = ''] = process.argv.slice(2)
const { holdfast } = (await import(build)) as typeof Library
const store = await openStore()
const ids = JSON.parse(await text(process.stdin)) as SampledIds
const failures: string[] = []

const hf = holdfast({ store, logger: false, timeout: '2m' })
await hf.queues()
const queuesMs = await repeated('queues', CALLS, () => hf.queues())
const getMs = await repeated('get', CALLS, (call) => store.admin.get(idFor(call)))
const listMs: Record<string, number[]> = {}
for (const [what, filter] of Object.entries(await filters())) listMs[what] = await pages(what, filter)
await hf.close()
console.log(JSON.stringify({ queuesMs, getMs, listMs, failures } satisfies Probed))

async function openStore(): Promise<Store> {
  const beside = (path: string): string => new URL(path, build).href
  if (url.startsWith('redis')) {
    const { redisStore } = (await import(beside('stores/redis/index.js'))) as typeof RedisLibrary
    return redisStore({ url })
  }
  const { postgresStore } = (await import(beside('stores/postgres/index.js'))) as typeof PostgresLibrary
  return postgresStore({ url })
}

/** One of each kind that `list` knows, and pairs that are asked together. */
async function filters(): Promise<Readonly<Record<string, JobFilter>>> {
  const { groups } = await store.admin.deadGroups({}, 1_000, null)
  const now = Date.now()
  const [hour, minute] = [3_600_000, 60_000]
  return {
    'no filter': {},
    'state completed': { states: ['completed'] },
    'state ready': { states: ['ready'] },
    'state scheduled': { states: ['scheduled'] },
    'state dead': { states: ['dead'] },
    'state cancelled (none)': { states: ['cancelled'] },
    'a queue': { queues: [QUEUES[1]] },
    'a queue, completed': { queues: [QUEUES[1]], states: ['completed'] },
    'a queue, ready': { queues: [QUEUES[1]], states: ['ready'] },
    'a name': { names: [NAMES[1]] },
    'a rare name': { names: [RARE] },
    'a rare name, ready': { names: [RARE], states: ['ready'] },
    'an unknown name': { names: ['unknown'] },
    'a queue, a rare name': { names: [RARE], queues: [QUEUES[2]] },
    'a fingerprint': { fingerprints: groups.slice(0, 1).map(({ fingerprint }) => fingerprint) },
    'finished in the last minute': { finishedFrom: now - minute },
    'finished over an hour ago (none)': { finishedBefore: now - hour },
    'a hundred ids': { ids: ids.finished.slice(-PAGE).map((id) => id as JobId) },
  }
}

/** Some pages from the newest on, then from places all over the store. */
async function pages(what: string, filter: JobFilter): Promise<number[]> {
  const tookMs: number[] = []
  const page = async (after: JobId | null): Promise<JobId | null> => {
    let next: JobId | null = null
    tookMs.push(
      await timed(`list: ${what}`, async () => {
        next = (await store.admin.list({ ...filter, limit: PAGE, after })).next
      }),
    )
    return next
  }
  const deadline = performance.now() + PATIENCE_MS
  for (const start of [null, ...deepCursors()]) {
    let after = start
    for (let count = 0; count < PAGES_IN_A_ROW && performance.now() < deadline; count++) {
      after = await page(after)
      if (after === null) break
    }
  }
  return tookMs
}

/** Ids of jobs are what pages start after. */
function deepCursors(): JobId[] {
  return [ids.finished, ids.waiting, ids.dead].flatMap((list) =>
    [0.05, 0.5, 0.95].map((share) => list[Math.floor(share * list.length)] as JobId),
  )
}

function idFor(call: number): JobId {
  const lists = [ids.finished, ids.waiting, ids.dead]
  const list = lists[call % lists.length] ?? []
  return list[Math.floor(((call * 0.618) % 1) * list.length)] as JobId
}

async function repeated(
  what: string,
  calls: number,
  ask: (call: number) => Promise<unknown>,
): Promise<number[]> {
  const tookMs: number[] = []
  const deadline = performance.now() + PATIENCE_MS
  for (let call = 0; call < calls && performance.now() < deadline; call++)
    tookMs.push(await timed(what, () => ask(call)))
  return tookMs
}

async function timed(what: string, ask: () => Promise<unknown>): Promise<number> {
  const since = performance.now()
  try {
    await ask()
  } catch (error) {
    failures.push(`${what}: ${error instanceof Error ? error.message : String(error)}`)
  }
  return performance.now() - since
}
