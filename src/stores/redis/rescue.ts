/**
 * Rescue in two steps: what dead workers hold is read, what becomes of each job is decided here as on every store, and
 * written only where the lease still stands and its worker is still dead. A settle or heartbeat in between wins.
 */
import { crashOutcome, crashRecord, type CrashOutcome } from '../../job/crash.ts'
import type { WorkerId } from '../../job/ids.ts'
import type { AttemptRecord } from '../../job/record.ts'
import type { Random } from '../../std/random.ts'
import { MAX_ATTEMPT_RECORDS, type RescueAnswer, type RescuedJob } from '../store.ts'
import { crashFacts } from './bodies.ts'
import type { RedisValue } from './driver.ts'
import { unpackId } from './ids.ts'
import type { Run } from './run.ts'
import type { Shard, Shards } from './shards.ts'

type OrphanRow = readonly [position: number, id: string, head: string, past: string | null, cancelled: number]

type LeaseRow = readonly [
  token: string,
  worker: WorkerId,
  queue: string,
  claimedAt: number,
  now: number,
  jobs: readonly OrphanRow[],
]

type Mortals = readonly [mortal: readonly WorkerId[], others: readonly WorkerId[]]

interface Decided {
  readonly row: OrphanRow
  readonly outcome: CrashOutcome
  readonly record: AttemptRecord
  readonly told: RescuedJob
}

const TO: Readonly<Record<string, RescuedJob['to']>> = { s: 'scheduled', d: 'dead', x: 'cancelled' }

export async function rescue(run: Run, shards: Shards, random: Random, limit: number): Promise<RescueAnswer> {
  const jobs: RescuedJob[] = []
  const all = await shards.all()
  for (const shard of all) {
    if (jobs.length < limit) jobs.push(...(await rescueFrom(run, shard, random, limit - jobs.length)))
  }
  return { workers: await bury(run, shards, all), jobs }
}

/** Workers of which nothing is left anywhere. Control is last: it tells who is known at all. */
async function bury(run: Run, { control }: Shards, all: readonly Shard[]): Promise<readonly WorkerId[]> {
  const queues = all.filter((shard) => shard !== control)
  if (queues.length === 0) return run(control, 'bury', [])
  const places = [...queues, control]
  const known = await Promise.all(places.map((shard) => run<Mortals>(shard, 'mortals', [])))
  const others = new Set(known.flatMap(([, living]) => living))
  const mortal = new Set(known.flatMap(([dead]) => dead).filter((worker) => !others.has(worker)))
  if (mortal.size === 0) return []
  await Promise.all(queues.map((shard) => run(shard, 'bury', [...mortal])))
  return run(control, 'bury', [...mortal])
}

async function rescueFrom(run: Run, shard: Shard, random: Random, limit: number): Promise<RescuedJob[]> {
  const leases = await run<LeaseRow[]>(shard, 'orphans', [limit])
  if (leases.length === 0) return []
  const decided = leases.map((lease) => lease[5].map((row) => decide(lease, row, random)))
  const args = leases.flatMap(([token, worker], index): RedisValue[] => {
    const jobs = decided[index] ?? []
    return [token, worker, jobs.length, ...jobs.flatMap(written)]
  })
  const letters = await run<string[]>(shard, 'rescue', [MAX_ATTEMPT_RECORDS, ...args])
  return decided.flatMap((jobs, index) =>
    jobs.flatMap(({ told }, at) => {
      const to = TO[letters[index]?.charAt(at) ?? '']
      return to === undefined ? [] : [{ ...told, to }]
    }),
  )
}

function decide([, worker, queue, claimedAt, now]: LeaseRow, row: OrphanRow, random: Random): Decided {
  const [, id, head, past, cancelled] = row
  const { name, ...facts } = crashFacts(head, past)
  const outcome = crashOutcome({ worker, ...facts, cancelled: cancelled === 1 }, random)
  const { crashes, error, to } = outcome
  const record = crashRecord(error, worker, claimedAt, now)
  return { row, outcome, record, told: { id: unpackId(id), name, queue, worker, crashes, to, error } }
}

/** One to be cancelled is found by the script itself: the cancel may come later than the decision. */
function written({ row, outcome, record }: Decided): RedisValue[] {
  const { to, crashes, delayMs, error } = outcome
  const texts = [JSON.stringify(error), JSON.stringify(record)]
  return [row[0], to === 'dead' ? 'd' : 's', crashes, Math.round(delayMs), ...texts]
}
