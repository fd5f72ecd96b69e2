/** Enqueues: a flush is one script on each shard that it has jobs for. */
import type { JobId } from '../../job/ids.ts'
import type { NewJob } from '../../job/record.ts'
import { brokenAnswer } from '../broken-answer.ts'
import { badFlush } from '../flush.ts'
import { checkFlush } from '../write-check.ts'
import type { EnqueueAnswer, Flush } from '../store.ts'
import { dueText, headStartOf, holdOf, tailOf } from './bodies.ts'
import type { RedisValue } from './driver.ts'
import { PACKED_CHARS, packId, unpackId } from './ids.ts'
import type { FlushAnswers, Senders } from './senders.ts'
import type { Run } from './run.ts'
import { isReply } from './server-errors.ts'
import type { Shard, Shards } from './shards.ts'

const OUTCOMES: Readonly<Record<string, EnqueueAnswer['outcome']>> = {
  i: 'inserted',
  d: 'duplicate',
  r: 'replaced',
  s: 'rescheduled',
}

export interface EnqueueParts {
  readonly run: Run
  readonly shards: Shards
  readonly senders: Senders
}

export async function enqueue(
  { run, shards, senders }: EnqueueParts,
  flush: Flush,
  withinMs?: number,
): Promise<readonly EnqueueAnswer[]> {
  checkFlush('redis', flush)
  const { id, jobs } = flush
  if (jobs.length === 0) return []
  const runInTime: Run = (shard, name, args) => run(shard, name, args, withinMs)
  const answers = await senders.once(id, (sender, seq) => send(runInTime, shards, jobs, [sender, seq]))
  return answers ?? jobs.map(insertedAnswer)
}

async function send(
  run: Run,
  shards: Shards,
  jobs: readonly NewJob[],
  flush: readonly [sender: string, seq: number],
): Promise<FlushAnswers> {
  const parts = [...byShard(shards, jobs)]
  await shards.know(parts.flatMap(([, [first]]) => first?.queue ?? []))
  const answered = await Promise.all(
    parts.map(async ([shard, mine]) => [mine, await sendPart(run, shard, mine, flush)] as const),
  )
  if (answered.every(([, answers]) => answers === null)) return null
  const byId = new Map<JobId, EnqueueAnswer>()
  for (const [mine, answers] of answered)
    for (const [index, job] of mine.entries()) byId.set(job.id, answers?.[index] ?? insertedAnswer(job))
  return jobs.map((job) => byId.get(job.id) ?? insertedAnswer(job))
}

function byShard(shards: Shards, jobs: readonly NewJob[]): Map<Shard, NewJob[]> {
  const parts = new Map<Shard, NewJob[]>()
  for (const job of jobs) {
    const shard = shards.of(job.queue)
    const mine = parts.get(shard)
    if (mine === undefined) parts.set(shard, [job])
    else mine.push(job)
  }
  return parts
}

async function sendPart(
  run: Run,
  shard: Shard,
  jobs: readonly NewJob[],
  flush: readonly RedisValue[],
): Promise<FlushAnswers> {
  try {
    const isKeyed = jobs.some((job) => job.unique !== null)
    const text = isKeyed
      ? await run<string>(shard, 'enqueue_unique', [...flush, jobs.length, ...jobs.flatMap(keyedJob)])
      : await run<string>(shard, 'enqueue', plainArgs(flush, jobs))
    return readAnswers(text)
  } catch (error) {
    throw refusalOf(error)
  }
}

/** Jobs that a script puts in the same place. */
interface Group {
  readonly queue: string
  readonly headStart: number
  readonly isDelayed: boolean
  count: number
  /** For each job, its arguments as enqueue.lua takes them. */
  readonly args: RedisValue[]
}

/** By queue and head start, so that most of what a script does is done once a group. Most flushes are one. */
function plainArgs(flush: readonly RedisValue[], jobs: readonly NewJob[]): RedisValue[] {
  const groups: Group[] = []
  let group: Group | undefined
  for (const job of jobs) {
    const due = dueText(job.due)
    const headStart = headStartOf(job)
    if (group === undefined || !isOf(group, job.queue, headStart, due))
      group = groupOf(groups, job.queue, headStart, due)
    group.count++
    if (due === '') group.args.push(packId(job.id), tailOf(job))
    else group.args.push(packId(job.id), due, tailOf(job))
  }
  const args: RedisValue[] = [...flush, groups.length]
  for (const { queue, headStart, isDelayed, count, args: own } of groups) {
    args.push(queue, headStart, isDelayed ? 'd' : 'n', count)
    for (const arg of own) args.push(arg)
  }
  return args
}

function isOf(group: Group, queue: string, headStart: number, due: string): boolean {
  return group.queue === queue && group.headStart === headStart && group.isDelayed === (due !== '')
}

function groupOf(groups: Group[], queue: string, headStart: number, due: string): Group {
  const known = groups.find((group) => isOf(group, queue, headStart, due))
  if (known !== undefined) return known
  const group: Group = { queue, headStart, isDelayed: due !== '', count: 0, args: [] }
  groups.push(group)
  return group
}

/** As job_at of insert.lua takes it. */
export function keyedJob(job: NewJob): RedisValue[] {
  const { unique } = job
  return [
    packId(job.id),
    job.queue,
    headStartOf(job),
    dueText(job.due),
    tailOf(job),
    unique === null ? '' : unique.key,
    unique === null ? '' : holdOf(unique),
    unique === null ? '' : unique.onConflict,
  ]
}

function readAnswers(text: string): FlushAnswers {
  if (text === '') return null
  const answers: EnqueueAnswer[] = []
  for (let at = 0; at < text.length; at += PACKED_CHARS + 1) {
    const outcome = OUTCOMES[text.charAt(at + PACKED_CHARS)]
    if (outcome === undefined)
      throw brokenAnswer('redis', `a script answered ${JSON.stringify(text)} to a flush`)
    answers.push({ id: unpackId(text.slice(at, at + PACKED_CHARS)), outcome })
  }
  return answers
}

function insertedAnswer({ id }: NewJob): EnqueueAnswer {
  return { id, outcome: 'inserted' }
}

/** Errors for what the scripts themselves refuse. */
export function refusalOf(error: unknown): unknown {
  if (!isReply(error)) return error
  const [code = '', id = ''] = error.message.split(' ')
  if (code === 'HFKNOWN')
    return badFlush('redis', `a new job with the id ${unpackId(id)}, which exists already`)
  if (code === 'HFSTALE') return badFlush('redis', 'a flush that was given up long ago')
  return error
}
