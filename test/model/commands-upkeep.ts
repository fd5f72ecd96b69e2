/** Upkeep in the model test: time passes, and promote, rescue, prune and lead run. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { JobId, WorkerId } from '../../src/job/ids.ts'
import { crashDelayMs } from '../../src/job/retry.ts'
import type { FinalState } from '../../src/job/states.ts'
import type { StoreUnderTest } from '../../src/stores/conformance/index.ts'
import type { RescuedJob } from '../../src/stores/store.ts'
import { choice, command, HALF_MS, lastsMs, MINUTE_MS, often, pick, type Command } from './command.ts'
import { beat, running } from './commands-worker.ts'
import { sameTime, sync } from './compare.ts'
import type { Model, ModelJob } from './model.ts'

async function pass(model: Model, under: StoreUnderTest, minutes: number): Promise<void> {
  await under.advance(minutes * MINUTE_MS)
  model.now += minutes * MINUTE_MS
}

const advance = command({
  name: 'advance',
  params: fc.record({ minutes: fc.constantFrom(1, 1, 2, 3, 5, 10, 30) }),
  run: async (model, under, { minutes }) => {
    await pass(model, under, minutes)
    return []
  },
})

async function promoteSome(model: Model, under: StoreUnderTest, limit: number): Promise<JobId[]> {
  const { promoted, nextInMs } = await under.store.upkeep.promote(limit)
  const due = model.inState('scheduled').filter((job) => job.dueAt <= model.now)
  let moved = 0
  for (const job of due) {
    const record = await under.store.admin.get(job.facts.id)
    if (record?.state !== 'ready') continue
    job.state = 'ready'
    moved++
  }
  assert.equal(promoted, moved, 'it tells how many it has moved')
  assert.equal(promoted, Math.min(limit, due.length), 'all that are due, up to the limit')
  const left = model.inState('scheduled').map((job) => job.dueAt)
  if (left.length === 0) assert.equal(nextInMs, null)
  else
    sameTime(
      model,
      Math.max(0, nextInMs ?? NaN),
      Math.max(0, Math.min(...left) - model.now),
      'the next due time',
    )
  return due.map((job) => job.facts.id)
}

const promote = command({
  name: 'promote',
  params: fc.record({ limit: fc.constantFrom(1, 2, 100) }),
  run: (model, under, { limit }) => promoteSome(model, under, limit),
})

// ── rescue ───────────────────────────────────────────────────────────────────

async function rescueSome(model: Model, under: StoreUnderTest, limit: number): Promise<JobId[]> {
  const orphans = model.orphans()
  const held = orphans.flatMap((lease) => lease.ids.filter((_, at) => lease.positions[at] === 'open'))
  const expired = model.workers.filter((worker) => worker.registered && worker.expiresAt <= model.now)
  const openOf = new Map(model.workers.map(({ id }) => [id, openInOrder(model, id)]))
  const answer = await under.store.upkeep.rescue(limit)
  const rescued = answer.jobs.map((job) => job.id)
  assert.equal(new Set(rescued).size, rescued.length, 'no job is rescued twice')
  for (const job of answer.jobs) {
    assert.ok(held.includes(job.id), `job ${job.id} was under a lease that may be rescued`)
    const { atOnce, rescued: gone } = model.worker(job.worker)
    const inOrder = openOf.get(job.worker) ?? assert.fail()
    const before = inOrder.filter((id) => startsIn(model, id) === startsIn(model, job.id)).indexOf(job.id)
    takeBack(model, job, atOnce === null || before < atOnce - (gone.get(startsIn(model, job.id)) ?? 0))
  }
  for (const { id, worker } of answer.jobs) {
    const { rescued: gone } = model.worker(worker)
    gone.set(startsIn(model, id), (gone.get(startsIn(model, id)) ?? 0) + 1)
  }
  assert.ok(rescued.length >= Math.min(limit, held.length), 'as many as there are, up to the limit')
  for (const id of answer.workers) {
    const worker = model.worker(id)
    assert.ok(
      expired.includes(worker) || orphans.some((lease) => lease.worker === id),
      'only lost workers go',
    )
    worker.registered = false
  }
  if (limit >= held.length) {
    assert.ok(
      expired.every((worker) => !worker.registered),
      'every expired worker is gone',
    )
  }
  return rescued
}

const rescue = command({
  name: 'rescue',
  params: fc.record({ limit: fc.constantFrom(1, 3, 1_000, 1_000) }),
  run: (model, under, { limit }) => rescueSome(model, under, limit),
})

/** The usual upkeep. Without it, few jobs would come back from a crash. */
const tick = command({
  name: 'tick',
  params: fc.record({ minutes: fc.integer({ min: 1, max: 6 }), beats: fc.boolean() }),
  run: async (model, under, { minutes, beats }) => {
    await pass(model, under, minutes)
    for (const worker of beats ? running(model) : [])
      await sync(model, under, await beat(model, under, worker, false))
    const rescued = await rescueSome(model, under, 1_000)
    await sync(model, under, rescued)
    await pass(model, under, 1)
    return promoteSome(model, under, 100)
  },
})

/** The jobs that a worker holds, in the order in which it starts them. */
function openInOrder(model: Model, worker: WorkerId): JobId[] {
  return model
    .openLeases(worker)
    .toSorted((a, b) => a.token - b.token)
    .flatMap(({ ids, positions }) => ids.filter((_, at) => positions[at] === 'open'))
}

/** Among what the starts of a job are counted. */
function startsIn(model: Model, id: JobId): string {
  return model.startsByQueue ? model.job(id).facts.queue : ''
}

function takeBack(model: Model, rescued: RescuedJob, mayHaveRun: boolean): void {
  const job = model.job(rescued.id)
  const { claimedAt } = job.lease ?? assert.fail('what is rescued was running')
  const lease = model.revoke(job)
  assert.deepEqual(
    { name: rescued.name, queue: rescued.queue, worker: rescued.worker, crashes: rescued.crashes },
    {
      name: job.facts.name,
      queue: job.facts.queue,
      worker: lease.worker,
      crashes: job.crashes + (mayHaveRun ? 1 : 0),
    },
  )
  const { error } = rescued
  if (!mayHaveRun || error === null) {
    assert.equal(error, mayHaveRun ? 'an error' : null, 'what cannot have been running has no error')
    assert.equal(rescued.to, job.cancelReasons.length > 0 ? 'cancelled' : 'ready')
    return model.release(job)
  }
  assert.deepEqual(
    { kind: error.kind, attempt: error.attempt },
    { kind: 'worker_lost', attempt: job.attempt },
  )
  job.crashes++
  const { stack: _stack, attempt, ...recorded } = error
  const crash = { attempt, worker: lease.worker, startedAt: claimedAt, durationMs: model.now - claimedAt }
  job.attempts = [...job.attempts, { ...crash, outcome: 'crashed' as const, error: recorded }].slice(-100)
  if (job.cancelReasons.length > 0) {
    assert.equal(rescued.to, 'cancelled', 'a cancel was asked for')
    const before = job.error
    model.cancelInstead(job, null)
    job.loose.error = [before, error]
  } else if (job.crashes > job.facts.maxCrashes) {
    assert.equal(rescued.to, 'dead', 'it has lost more workers than it may')
    job.loose.attempt = [job.attempt, job.attempt - 1]
    model.finish(job, 'dead')
    job.error = error
  } else {
    assert.equal(rescued.to, 'scheduled')
    job.attempt--
    const delayMs = crashDelayMs(job.crashes)
    model.wait(job, delayMs, error)
    job.dueBetween = [model.now + delayMs / 2, model.now + delayMs]
  }
}

// ── prune ────────────────────────────────────────────────────────────────────

const keep = fc.record({
  ms: fc.constantFrom(HALF_MS, 5 * MINUTE_MS + HALF_MS, 1_000 * MINUTE_MS + HALF_MS),
  max: fc.constantFrom(null, null, 0, 1, 3),
})
type Keep = typeof keep extends fc.Arbitrary<infer Value> ? Value : never

const prune = command({
  name: 'prune',
  params: fc.record({ completed: keep, dead: keep, cancelled: keep, limit: fc.constantFrom(1, 3, 1_000) }),
  run: async (model, under, { completed, dead, cancelled, limit }) => {
    const retention = {
      completedMs: completed.ms,
      deadMs: dead.ms,
      cancelledMs: cancelled.ms,
      maxCompleted: completed.max,
      maxDead: dead.max,
      maxCancelled: cancelled.max,
    }
    const { pruned } = await under.store.upkeep.prune(retention, limit)
    const kinds = { completed, dead, cancelled }
    let excess = 0
    const gone: JobId[] = []
    for (const [state, rule] of Object.entries(kinds) as [FinalState, Keep][]) {
      const jobs = model.inState(state)
      const tooMany = excessOf(model, jobs, rule)
      excess += tooMany
      for (const job of jobs) {
        if ((await under.store.admin.get(job.facts.id)) !== null) continue
        const older = jobs.filter((other) => other.finishedAt < job.finishedAt).length
        assert.ok(isTooOld(model, job, rule) || older < tooMany, `a ${state} job that is to be kept is gone`)
        gone.push(job.facts.id)
      }
    }
    assert.equal(gone.length, pruned, 'it tells how many it has forgotten')
    assert.equal(pruned, Math.min(limit, excess), 'all beyond the retention, up to the limit')
    for (const id of gone) model.forget(model.job(id))
    return gone
  },
})

function isTooOld(model: Model, job: ModelJob, { ms }: Keep): boolean {
  return job.finishedAt + ms <= model.now
}

function excessOf(model: Model, jobs: readonly ModelJob[], rule: Keep): number {
  const old = jobs.filter((job) => isTooOld(model, job, rule)).length
  return rule.max === null ? old : Math.max(old, jobs.length - rule.max)
}

// ── leader ───────────────────────────────────────────────────────────────────

const lead = command({
  name: 'lead',
  params: fc.record({ which: choice, ttlMs: lastsMs }),
  when: (model) => model.workers.length > 0,
  run: async (model, under, { which, ttlMs }) => {
    const { id } = pick(model.workers, which) ?? assert.fail()
    const free = model.leader === null || model.leader.id === id || model.leader.untilMs <= model.now
    assert.equal(await under.store.upkeep.lead(id, ttlMs), free, 'one leader at a time')
    if (free) model.leader = { id, untilMs: model.now + ttlMs }
    return []
  },
})

const resign = command({
  name: 'resign',
  params: fc.record({ which: choice }),
  when: (model) => model.workers.length > 0,
  run: async (model, under, { which }) => {
    const { id } = pick(model.workers, which) ?? assert.fail()
    await under.store.upkeep.lead(id, 0)
    if (model.leader?.id === id) model.leader = null
    return []
  },
})

export const upkeepCommands: readonly fc.Arbitrary<Command>[] = [
  advance,
  promote,
  rescue,
  ...often(4, tick),
  prune,
  lead,
  resign,
]
