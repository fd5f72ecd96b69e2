/**
 * Rescue in two steps: a script reads what dead workers hold, the outcome of each job is decided here by the rules of
 * all stores, and a second script writes it if the lease still exists and its worker is still dead. A settle or
 * heartbeat in between wins.
 */
import { crashOutcome, crashRecord, mayHaveRun, type CrashOutcome } from '../../job/crash.ts'
import type { WorkerId } from '../../job/ids.ts'
import type { AttemptRecord } from '../../job/record.ts'
import type { Random } from '../../std/random.ts'
import { MAX_ATTEMPT_RECORDS, type RescueAnswer, type RescuedJob } from '../store.ts'
import { crashFacts } from './bodies.ts'
import type { RedisValue } from './driver.ts'
import { unpackId } from './ids.ts'
import type { Run } from './run.ts'
import type { Shard, Shards } from './shards.ts'

type HeldRow = readonly [position: number, id: string, head: string, past: string | null, cancelled: number]

type LeaseRow = readonly [
  token: string,
  worker: WorkerId,
  queue: string,
  claimedAt: number,
  now: number,
  atOnce: string,
  jobs: readonly HeldRow[],
]

type KnownWorkers = readonly [expired: readonly WorkerId[], others: readonly WorkerId[]]

interface Decided {
  readonly row: HeldRow
  readonly outcome: CrashOutcome
  readonly record: AttemptRecord | null
  readonly told: RescuedJob
}

const TO: Readonly<Record<string, RescuedJob['to']>> = {
  l: 'ready',
  s: 'scheduled',
  d: 'dead',
  x: 'cancelled',
}

export async function rescue(run: Run, shards: Shards, random: Random, limit: number): Promise<RescueAnswer> {
  const jobs: RescuedJob[] = []
  const all = await shards.all()
  for (const shard of all) {
    if (jobs.length < limit) jobs.push(...(await rescueFrom(run, shard, random, limit - jobs.length)))
  }
  return { workers: await forgetWorkers(run, shards, all), jobs }
}

/** Forgets expired workers that hold nothing in any shard. Control is last: it knows which workers exist. */
async function forgetWorkers(
  run: Run,
  { control }: Shards,
  all: readonly Shard[],
): Promise<readonly WorkerId[]> {
  const queues = all.filter((shard) => shard !== control)
  if (queues.length === 0) return run(control, 'forget_workers', [])
  const places = [...queues, control]
  const known = await Promise.all(places.map((shard) => run<KnownWorkers>(shard, 'expired_workers', [])))
  const others = new Set(known.flatMap(([, living]) => living))
  const expired = new Set(known.flatMap(([gone]) => gone).filter((worker) => !others.has(worker)))
  if (expired.size === 0) return []
  await Promise.all(queues.map((shard) => run(shard, 'forget_workers', [...expired])))
  return run(control, 'forget_workers', [...expired])
}

async function rescueFrom(run: Run, shard: Shard, random: Random, limit: number): Promise<RescuedJob[]> {
  const leases = await run<LeaseRow[]>(shard, 'expired_leases', [limit])
  if (leases.length === 0) return []
  const before = new Map<WorkerId, number>()
  const decided = leases.map((lease) => {
    const [, worker, , , , atOnce, jobs] = lease
    const openBefore = before.get(worker) ?? 0
    before.set(worker, openBefore + jobs.length)
    const bound = atOnce === '' ? null : Number(atOnce)
    return jobs.map((row, index) => decide(lease, row, mayHaveRun(openBefore + index, bound), random))
  })
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

function decide(
  [, worker, queue, claimedAt, now]: LeaseRow,
  row: HeldRow,
  ran: boolean,
  random: Random,
): Decided {
  const [, id, head, past, cancelled] = row
  const { name, ...facts } = crashFacts(head, past)
  const outcome = crashOutcome({ worker, ...facts, cancelled: cancelled === 1, mayHaveRun: ran }, random)
  const { crashes, error, to } = outcome
  const record = crashRecord(error, worker, claimedAt, now)
  return { row, outcome, record, told: { id: unpackId(id), name, queue, worker, crashes, to, error } }
}

/** The script itself cancels a job if that was requested, because the cancel may come after the decision. */
function written({ row, outcome, record }: Decided): RedisValue[] {
  const { to, crashes, delayMs, error } = outcome
  const texts = [JSON.stringify(error), JSON.stringify(record)]
  const letter = error === null ? 'l' : to === 'dead' ? 'd' : 's'
  return [row[0], letter, crashes, Math.round(delayMs), ...texts]
}
