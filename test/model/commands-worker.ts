/** Workers in the model test: they register, claim, settle, send heartbeats, retire, and sometimes crash. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { JobId, Token, WorkerId } from '../../src/job/ids.ts'
import type { StoreUnderTest } from '../../src/stores/conformance/index.ts'
import type { ClaimRequest, CycleRequest, Lease, SettleRequest } from '../../src/stores/store.ts'
import { choice, command, fault, HALF_MS, MINUTE_MS, often, pick, type Command } from './command.ts'
import { QUEUES } from './commands-enqueue.ts'
import { sameTime } from './compare.ts'
import { claimedOf, type Model, type ModelJob, type ModelWorker } from './model.ts'
import { attemptRecord, settlement } from './settlements.ts'

/** Workers whose process still runs. The store may have given up on some of them. */
export function running(model: Model): ModelWorker[] {
  return model.workers.filter((worker) => !worker.stopped)
}

const register = command({
  name: 'register',
  params: fc.record({
    leaseMs: fc.constantFrom(1, 5, 15).map((minutes) => minutes * MINUTE_MS + HALF_MS),
    atOnce: fc.constantFrom(null, 0, 1, 2, 4),
  }),
  run: async (model, under, { leaseMs, atOnce }) => {
    const id = model.ids.worker()
    await under.store.register(id, leaseMs, atOnce ?? undefined)
    const expiresAt = model.now + leaseMs
    model.workers.push({
      id,
      leaseMs,
      expiresAt,
      registered: true,
      atOnce,
      rescued: new Map(),
      stopped: false,
    })
    return []
  },
})

const retire = command({
  name: 'retire',
  params: fc.record({ which: choice }),
  when: (model) => running(model).length > 0,
  run: async (model, under, { which }) => {
    const worker = pick(running(model), which) ?? assert.fail()
    await under.store.retire(worker.id)
    worker.registered = false
    worker.atOnce = null
    worker.stopped = true
    return []
  },
})

const crash = command({
  name: 'crash',
  params: fc.record({ which: choice }),
  when: (model) => running(model).length > 0,
  run: async (model, _under, { which }) => {
    const busy = running(model).filter((worker) => model.openLeases(worker.id).length > 0)
    const worker = pick(busy, which) ?? pick(running(model), which) ?? assert.fail()
    worker.stopped = true
    return []
  },
})

// ── cycle ────────────────────────────────────────────────────────────────────

/** Makes the call and compares every part of the answer with the model. */
export async function cycle(
  model: Model,
  under: StoreUnderTest,
  request: CycleRequest,
  known: boolean,
): Promise<JobId[]> {
  const answer = await under.store.cycle(request)
  const touched: JobId[] = []
  assert.equal(answer.settled.length, request.settle.length, 'one answer for each settle')
  answer.settled.forEach((actual, index) => {
    const one = request.settle[index] ?? assert.fail()
    const allowed = model.settleAnswers(request.worker, one)
    assert.ok(
      allowed.includes(actual),
      `settle ${fc.stringify(one)} is ${actual}, not ${allowed.join(' or ')}`,
    )
    if (actual === 'written') touched.push(model.settle(one).facts.id)
  })
  const alive = model.workers.some((worker) => worker.id === request.worker && worker.registered)
  assert.equal(answer.alive, alive, 'alive means known to the store')
  if (!alive) for (const worker of model.workers) worker.stopped ||= worker.id === request.worker
  if (!alive || request.claim === null) {
    assert.deepEqual(answer.leases, [], 'nothing is claimed')
  } else {
    checkClaim(model, request.claim, answer.leases)
    for (const lease of answer.leases) model.grant(request.worker, lease, known)
    touched.push(...answer.leases.flatMap((lease) => lease.jobs.map((job) => job.id)))
  }
  return touched
}

function checkClaim(model: Model, { queue, limit, suspects }: ClaimRequest, leases: readonly Lease[]): void {
  for (const lease of leases) {
    assert.equal(lease.queue, queue)
    assert.ok(lease.jobs.length > 0, 'a lease holds something')
    sameTime(model, lease.claimedAt, model.now, 'claimedAt')
    model.sawTime(lease.claimedAt)
    for (const claimed of lease.jobs) {
      const job = model.job(claimed.id)
      assert.equal(job.state, 'ready', `job ${claimed.id} is claimed`)
      assert.deepEqual(
        claimed,
        { ...claimedOf(job), attempt: job.attempt + 1 },
        'the job as it is handed out',
      )
    }
  }
  const plain = leases.filter((lease) => lease.jobs.some((job) => job.crashes === 0))
  const alone = leases.filter((lease) => lease.jobs.some((job) => job.crashes > 0))
  assert.ok(plain.length <= 1 && alone.length <= 1, 'at most one lease of each kind')
  const takenPlain = plain.flatMap((lease) => lease.jobs.map((job) => job.id))
  const takenAlone = alone.flatMap((lease) => lease.jobs.map((job) => job.id))
  assert.ok(takenAlone.length <= 1, 'a suspect is alone in its lease')
  const open = !model.paused.has(queue)
  const plainLine = open ? model.line(queue, false).map((job) => job.facts.id) : []
  const suspectLine = open && suspects ? model.line(queue, true).map((job) => job.facts.id) : []
  assert.deepEqual(takenPlain, plainLine.slice(0, takenPlain.length), 'plain jobs in order of rank')
  assert.deepEqual(takenAlone, suspectLine.slice(0, takenAlone.length), 'the first suspect')
  const taken = takenPlain.length + takenAlone.length
  const claimable = plainLine.length + Math.min(1, suspectLine.length)
  assert.equal(taken, Math.min(limit, claimable), 'as many as there are, up to the limit')
}

/** Positions that the worker believes it holds. */
function heldBy(model: Model, worker: WorkerId): { token: SettleRequest['token']; position: number }[] {
  return model
    .openLeases(worker)
    .filter((lease) => lease.known)
    .flatMap(({ token, positions }) =>
      positions.flatMap((at, position) => (at === 'open' ? [{ token, position }] : [])),
    )
}

const cycleCommand = command({
  name: 'cycle',
  params: fc.record({
    which: choice,
    settles: fc.array(
      fc.record({ which: choice, settlement, runMs: fc.nat({ max: 500 }), record: fc.option(attemptRecord) }),
      { maxLength: 4 },
    ),
    claim: fc.option(
      fc.record({
        queue: fc.constantFrom<string>(...QUEUES),
        limit: fc.integer({ min: 1, max: 5 }),
        suspects: fc.constantFrom(true, true, false),
      }),
      { freq: 4 },
    ),
    fault,
  }),
  when: (model) => running(model).length > 0,
  run: async (model, under, { which, settles, claim, fault: lost }) => {
    const { id: worker } = pick(running(model), which) ?? assert.fail()
    const held = heldBy(model, worker)
    const settle = settles.flatMap((one): SettleRequest[] => {
      const at = pick(held, one.which)
      if (at === undefined) return []
      const { settlement, runMs, record } = one
      if (record === null) return [{ ...at, settlement, runMs }]
      const { keepRecords, ...facts } = record
      return [{ ...at, settlement, runMs, record: { ...facts, worker }, keepRecords }]
    })
    // The caller repeats a call without an answer exactly as it was.
    model.oldSettles.push(...settle.map((request) => ({ worker, request })))
    if (lost === 'lostRequest') return []
    return cycle(model, under, { worker, settle, claim }, lost !== 'lostReply')
  },
})

/** One heartbeat. A worker that learns that it is dead stops, like a real one. */
export async function beat(
  model: Model,
  under: StoreUnderTest,
  worker: ModelWorker,
  foreign: boolean,
  tells: { readonly hears?: boolean; readonly atOnce?: number } = {},
): Promise<JobId[]> {
  const mine = model.openLeases(worker.id)
  const lost = worker.registered ? mine.filter((lease) => !lease.known) : []
  // Leases of other workers and old tokens must be left alone.
  const others = foreign ? model.leases.filter((lease) => lease.worker !== worker.id) : []
  const undelivered = [...lost, ...others].map((lease) => lease.token)
  const { hears = false, ...raised } = tells
  const heard = hears ? cancelsOf(model, worker.id) : []
  const answer = await under.store.heartbeat({ worker: worker.id, undelivered, heard, ...raised })
  assert.equal(answer.alive, worker.registered, 'alive means known to the store')
  if (!answer.alive) {
    worker.stopped = true
    return []
  }
  worker.expiresAt = model.now + worker.leaseMs
  if (tells.atOnce !== undefined) {
    worker.atOnce = tells.atOnce
    worker.rescued.clear()
  }
  for (const { job } of heard) job.heard = true
  const released = lost.flatMap((lease) => lease.ids.filter((_, at) => lease.positions[at] === 'open'))
  for (const id of released) {
    const job = model.job(id)
    model.revoke(job)
    model.release(job)
  }
  const left = model.openLeases(worker.id)
  assert.deepEqual(
    [...answer.tokens].toSorted((a, b) => a - b),
    left.map(({ token }) => token).toSorted((a, b) => a - b),
    'all leases in the name of the worker',
  )
  checkNotices(model, worker.id, answer.cancelled)
  const open = left.flatMap(({ ids, positions }) => ids.filter((_, at) => positions[at] === 'open'))
  const queues = new Set(open.map((id) => model.job(id).facts.queue))
  for (const queue of [...queues].filter((name) => model.paused.has(name)))
    assert.ok(answer.paused.includes(queue), 'it is told of the pauses that concern it')
  for (const queue of answer.paused) assert.ok(model.paused.has(queue), 'and of no other')
  return released
}

/** Each place of the worker's leases whose job is to be cancelled. */
function cancelsOf(model: Model, worker: WorkerId): { token: Token; position: number; job: ModelJob }[] {
  return model.openLeases(worker).flatMap(({ token, ids, positions }) =>
    ids.flatMap((id, position) => {
      const job = positions[position] === 'open' ? model.job(id) : undefined
      return job !== undefined && job.cancelReasons.length > 0 ? [{ token, position, job }] : []
    }),
  )
}

const heartbeat = command({
  name: 'heartbeat',
  params: fc.record({
    which: choice,
    foreign: fc.boolean(),
    hears: fc.boolean(),
    atOnce: fc.constantFrom(null, null, 1, 3),
  }),
  when: (model) => running(model).length > 0,
  run: (model, under, { which, foreign, hears, atOnce }) => {
    const tells = { hears, ...(atOnce === null ? {} : { atOnce }) }
    return beat(model, under, pick(running(model), which) ?? assert.fail(), foreign, tells)
  },
})

function checkNotices(
  model: Model,
  worker: WorkerId,
  notices: readonly { token: number; position: number; reason: string | null }[],
): void {
  const expected = cancelsOf(model, worker).filter(({ job }) => !job.heard)
  assert.equal(notices.length, expected.length, 'one notice for each job to be cancelled, until it is heard')
  for (const { token, position, job } of expected) {
    const notice = notices.find((one) => one.token === token && one.position === position)
    assert.ok(
      notice !== undefined && job.cancelReasons.includes(notice.reason),
      'the notice names its place and reason',
    )
  }
}

export const workerCommands: readonly fc.Arbitrary<Command>[] = [
  ...often(3, register),
  retire,
  ...often(2, crash),
  ...often(12, cycleCommand),
  heartbeat,
]
