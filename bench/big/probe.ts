/**
 * Asks a big store what an operator asks, over and over, and prints how long each answer took as JSON. Runs in a process
 * of its own: `probe.ts <index.js of Holdfast> <url>`, with the sampled ids on the standard input.
 */
import { text } from 'node:stream/consumers'
import type * as Library from 'holdfast'
import type { JobFilter, JobId } from 'holdfast/store'
import { NAMES, QUEUES, RARE, type SampledIds, SIDE_QUEUE, TAG } from './data.ts'
import { hold, openStore } from './store.ts'

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
/** Jobs that run meanwhile. */
const LEASES = 100
const LEASE_SIZE = 50

const [build = '', url = ''] = process.argv.slice(2)
const { holdfast } = (await import(build)) as typeof Library
const store = await openStore(build, url)
const ids = JSON.parse(await text(process.stdin)) as SampledIds
const failures: string[] = []

const hf = holdfast({ store, logger: false, timeout: '2m' })
await hf.queues()
await hold(store, QUEUES[0], LEASES, LEASE_SIZE)
const queuesMs = await repeated('queues', CALLS, () => hf.queues())
const getMs = await repeated('get', CALLS, (call) => store.admin.get(idFor(call)))
const listMs: Record<string, number[]> = {}
for (const [what, filter] of Object.entries(await filters())) listMs[what] = await pages(what, filter)
await hf.close()
console.log(JSON.stringify({ queuesMs, getMs, listMs, failures } satisfies Probed))

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
    'state cancelled': { states: ['cancelled'] },
    'state running': { states: ['running'] },
    'state running, a tag (none)': { states: ['running'], tags: ['unknown'] },
    'a queue': { queues: [QUEUES[1]] },
    'a queue, completed': { queues: [QUEUES[1]], states: ['completed'] },
    'a queue, ready': { queues: [QUEUES[1]], states: ['ready'] },
    'a name': { names: [NAMES[1]] },
    'a rare name': { names: [RARE] },
    'a rare name, ready': { names: [RARE], states: ['ready'] },
    'an unknown name': { names: ['unknown'] },
    'a queue, a rare name': { names: [RARE], queues: [QUEUES[2]] },
    'a queue of small batches and cancelled jobs': { queues: [SIDE_QUEUE] },
    'a tag': { tags: [TAG] },
    'a tag, completed': { tags: [TAG], states: ['completed'] },
    'an unknown tag': { tags: ['unknown'] },
    'an id prefix': { idPrefix: (ids.finished.at(-1) ?? '').slice(0, 10) },
    'the id prefix of one job': { idPrefix: (ids.small.at(-1) ?? '').slice(0, 23) },
    'created in the last minute': { createdFrom: now - minute },
    'created over an hour ago (none)': { createdBefore: now - hour },
    'dead, failed in the last minute': { states: ['dead'], finishedFrom: now - minute },
    'dead, a fingerprint': {
      states: ['dead'],
      fingerprints: groups.slice(0, 1).map(({ fingerprint }) => fingerprint),
    },
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
  return Object.values<readonly string[]>({ ...ids }).flatMap((list) =>
    [0.05, 0.5, 0.95].map((share) => list[Math.floor(share * list.length)] as JobId),
  )
}

function idFor(call: number): JobId {
  const lists = Object.values<readonly string[]>({ ...ids })
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
