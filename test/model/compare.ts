/** Compares the store with the model: single records after each command, everything from time to time. */
import assert from 'node:assert/strict'
import type { JobId } from '../../src/job/ids.ts'
import type { JobRecord } from '../../src/job/record.ts'
import { JOB_STATES, type JobState } from '../../src/job/states.ts'
import type { StoreUnderTest } from '../../src/stores/conformance/index.ts'
import { isDeepStrictEqual } from 'node:util'
import type { Store } from '../../src/stores/store.ts'
import { claimedOf, type Model, type ModelJob } from './model.ts'

export function sameTime(model: Model, actual: number, expected: number, what: string): void {
  assert.ok(
    actual === expected,
    `${what} is ${actual - model.now} ms from now, not ${expected - model.now} ms`,
  )
}

/** Compares each job with the model. If the contract leaves a choice, the model adopts the store's. */
export async function sync(model: Model, under: StoreUnderTest, ids: Iterable<JobId>): Promise<void> {
  for (const id of new Set(ids)) {
    const record = await under.store.admin.get(id)
    const job = model.jobs.get(id)
    if (job === undefined) assert.equal(record, null, `job ${id} is not in the store`)
    else matchRecord(model, job, record ?? assert.fail(`job ${id} (${job.state}) is lost`))
  }
}

function matchRecord(model: Model, job: ModelJob, record: JobRecord): void {
  adoptLoose(job, record)
  checkTimes(model, job, record)
  assert.deepEqual(record, expectedRecord(job), `the record of job ${job.facts.id}`)
}

function adoptLoose(job: ModelJob, record: JobRecord): void {
  for (const [field, allowed] of Object.entries(job.loose)) {
    if (!(field in record)) continue
    const actual: unknown = record[field as keyof typeof record]
    if (allowed.some((value) => isDeepStrictEqual(value, actual))) Object.assign(job, { [field]: actual })
  }
  job.loose = {}
}

/** Times set by the store's clock, which stands still as the model's does. Only a due time may be left to chance. */
function checkTimes(model: Model, job: ModelJob, record: JobRecord): void {
  sameTime(model, record.createdAt, job.createdAt, 'createdAt')
  if (job.dueBetween === null) sameTime(model, record.dueAt, job.dueAt, 'dueAt')
  else {
    const [low, high] = job.dueBetween
    const fits = record.dueAt >= low && record.dueAt <= high
    assert.ok(fits, `the due time is ${record.dueAt - low} ms after the earliest of ${high - low} ms`)
  }
  job.dueAt = record.dueAt
  job.dueBetween = null
  job.attempts = job.attempts.map((attempt, index) => {
    const durationMs = record.attempts[index]?.durationMs
    if (attempt.outcome !== 'crashed' || durationMs === undefined) return attempt
    sameTime(model, durationMs, attempt.durationMs, 'the duration of a crashed attempt')
    return { ...attempt, durationMs }
  })
  if ('finishedAt' in record && 'finishedAt' in expectedRecord(job)) {
    sameTime(model, record.finishedAt, job.finishedAt, 'finishedAt')
    job.finishedAt = record.finishedAt
    model.sawTime(record.finishedAt)
  }
}

function expectedRecord(job: ModelJob): JobRecord {
  const { error, attempts, log, progress, finishedAt, state } = job
  const uniqueKey = job.facts.unique?.key ?? null
  const facts = { ...claimedOf(job), uniqueKey, error, attempts, log, progress }
  switch (state) {
    case 'scheduled':
    case 'blocked':
    case 'ready':
      return { ...facts, state }
    case 'running': {
      const lease = job.lease ?? assert.fail('a running job has a lease')
      return { ...facts, state, ...lease, cancelRequested: job.cancelReasons.length > 0 }
    }
    case 'completed': {
      const { result, resultDropped, runMs } = job
      const worker = job.settledBy ?? assert.fail('a completed job was settled by somebody')
      return { ...facts, state, finishedAt, result, resultDropped, runMs, worker }
    }
    case 'dead':
      return { ...facts, state, finishedAt, error: error ?? assert.fail('a dead job has an error') }
    case 'cancelled':
      return { ...facts, state, finishedAt, reason: job.reason }
  }
}

/** Every job, every list and every count. */
export async function compareAll(model: Model, under: StoreUnderTest): Promise<void> {
  await sync(model, under, [...model.jobs.keys(), ...model.absent])
  const newestFirst = [...model.jobs.keys()].toSorted((a, b) => (a < b ? 1 : -1))
  assert.deepEqual(await listAll(under), newestFirst, 'the list holds every job once, newest first')
  await compareQueues(model, under)
}

async function listAll(under: StoreUnderTest): Promise<JobId[]> {
  const listed: JobId[] = []
  let after: JobId | null = null
  do {
    const page: Awaited<ReturnType<Store['admin']['list']>> = await under.store.admin.list({
      limit: 7,
      after,
    })
    listed.push(...page.jobs.map((job) => job.id))
    after = page.next
  } while (after !== null)
  return listed
}

async function compareQueues(model: Model, under: StoreUnderTest): Promise<void> {
  const statuses = await under.store.admin.queues()
  const listed = statuses.map(({ queue }) => queue)
  for (const queue of [...model.queues, ...model.paused])
    assert.ok(listed.includes(queue), `queue ${queue} is listed`)
  assert.equal(new Set(listed).size, listed.length, 'each queue is listed once')
  for (const status of statuses) {
    const mine = [...model.jobs.values()].filter((job) => job.facts.queue === status.queue)
    const counts = Object.fromEntries(JOB_STATES.map((state) => [state, 0])) as Record<JobState, number>
    for (const job of mine) counts[job.state]++
    assert.deepEqual(status.counts, counts, `the counts of ${status.queue}`)
    assert.equal(status.paused, model.paused.has(status.queue), `whether ${status.queue} is paused`)
    const readyAt = mine.filter((job) => job.state === 'ready').map((job) => job.dueAt)
    assert.equal(status.oldestReadyAt, readyAt.length === 0 ? null : Math.min(...readyAt))
  }
}

/** The leases that living workers are told they hold. Only at the end of a run, because it renews every lease. */
export async function compareTokens(model: Model, under: StoreUnderTest): Promise<void> {
  for (const worker of model.workers) {
    if (worker.stopped || !worker.registered) continue
    const answer = await under.store.heartbeat({ worker: worker.id, undelivered: [] })
    const expected = model.openLeases(worker.id).map((lease) => lease.token)
    assert.equal(answer.alive, true)
    assert.deepEqual(
      [...answer.tokens].toSorted((a, b) => a - b),
      expected.toSorted((a, b) => a - b),
      'the leases of a living worker',
    )
  }
}
