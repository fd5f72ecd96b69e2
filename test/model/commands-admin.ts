/** Administration in the model test: pause, cancel, replay, discard, and the reports of handlers. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { JobId } from '../../src/job/ids.ts'
import { isFinal, JOB_STATES } from '../../src/job/states.ts'
import type { StoreUnderTest } from '../../src/stores/conformance/index.ts'
import type { ChangeOutcome, JobChange, JobEdit, JobFilter, Report } from '../../src/stores/store.ts'
import { choice, command, lastsMs, MINUTE_MS, often, pick, type Command } from './command.ts'
import { QUEUES } from './commands-enqueue.ts'
import type { Model, ModelJob } from './model.ts'
import { cancelOne, changeJobs, editOne } from '../../src/stores/conformance/support.ts'

const reason = fc.constantFrom(null, 'one reason', 'another reason')
const payload = fc.constantFrom('"edited"', JSON.stringify('long '.repeat(1_000)))

const pause = command({
  name: 'pause',
  params: fc.record({
    queue: fc.constantFrom<string>(...QUEUES),
    paused: fc.constantFrom(true, false, false),
  }),
  run: async (model, under, { queue, paused }) => {
    await under.store.admin.setPaused(queue, paused)
    if (paused) model.paused.add(queue)
    else model.paused.delete(queue)
    return []
  },
})

// ── cancel ───────────────────────────────────────────────────────────────────

function cancelled(model: Model, job: ModelJob, why: string | null): ChangeOutcome {
  if (isFinal(job.state)) return 'final'
  if (job.heard) return 'heard'
  if (job.state === 'running') {
    job.cancelReasons.push(why)
    return 'requested'
  }
  model.finish(job, 'cancelled')
  job.reason = why
  return 'cancelled'
}

const cancel = command({
  name: 'cancel',
  params: fc.record({ which: choice, running: fc.boolean(), reason }),
  when: (model) => model.jobs.size > 0,
  run: async (model, under, { which, running, reason: why }) => {
    const jobs = running ? model.inState('running') : [...model.jobs.values()]
    const job = pick(jobs, which) ?? pick([...model.jobs.values()], which) ?? assert.fail()
    const { id } = job.facts
    assert.equal(await cancelOne(under.store, id, why), cancelled(model, job, why))
    return [id]
  },
})

const cancelMissing = command({
  name: 'cancelMissing',
  params: fc.record({ which: choice }),
  when: (model) => model.absent.size > 0,
  run: async (model, under, { which }) => {
    const id = pick([...model.absent], which) ?? assert.fail()
    assert.equal(await cancelOne(under.store, id, null), 'missing')
    return [id]
  },
})

// ── bulk changes ─────────────────────────────────────────────────────────────

/** Whether the action changes the job, or 'either' if the contract leaves it open. */
function changes(model: Model, job: ModelJob, action: JobChange): boolean | 'either' {
  if (action.type === 'cancel') return !isFinal(job.state)
  if (action.type === 'discard') return isFinal(job.state)
  if (job.state !== 'dead') return false
  const { id, unique } = job.facts
  if (unique === null) return true
  const { must, may } = model.keys.holding(unique.key)
  if (must !== null && must !== id) return false
  return may !== null && may !== id ? 'either' : true
}

function applyChange(model: Model, job: ModelJob, action: JobChange): void {
  if (action.type === 'cancel') cancelled(model, job, action.reason)
  else if (action.type === 'discard') model.forget(job)
  else replay(model, job, action.payload)
}

function replay(model: Model, job: ModelJob, payload = job.facts.payload): void {
  job.facts = { ...job.facts, payload }
  const { id, unique } = job.facts
  if (unique !== null) model.keys.retake(id, unique)
  job.state = 'ready'
  job.attempt = 0
  job.crashes = 0
  job.dueAt = model.now
  job.loose.error = [job.error, null]
  model.looseProgress(job)
}

const filter = fc.record({
  states: fc.option(fc.subarray([...JOB_STATES], { minLength: 1 }), { nil: undefined }),
  queues: fc.option(fc.subarray([...QUEUES], { minLength: 1 }), { nil: undefined, freq: 2 }),
})

function matching(model: Model, { states, queues }: JobFilter, after: JobId | null): ModelJob[] {
  return [...model.jobs.values()]
    .filter((job) => states?.includes(job.state) ?? true)
    .filter((job) => queues?.includes(job.facts.queue) ?? true)
    .filter((job) => after === null || job.facts.id > after)
    .toSorted((a, b) => (a.facts.id < b.facts.id ? -1 : 1))
}

async function changeStep(
  model: Model,
  under: StoreUnderTest,
  wanted: JobFilter,
  action: JobChange,
  limit: number,
  after: JobId | null,
): Promise<{ touched: JobId[]; next: JobId | null }> {
  const matches = matching(model, wanted, after)
  const page = matches.slice(0, limit)
  const answer = await changeJobs(under.store, wanted, action, limit, after)
  let changed = 0
  for (const job of page) {
    let does = changes(model, job, action)
    if (does === 'either') does = (await under.store.admin.get(job.facts.id))?.state === 'ready'
    if (!does) continue
    applyChange(model, job, action)
    changed++
  }
  assert.deepEqual(
    { changed: answer.changed, skipped: answer.skipped },
    { changed, skipped: page.length - changed },
    `${action.type} of ${page.length} jobs`,
  )
  if (matches.length > page.length) assert.ok(answer.next !== null, 'there is more to change')
  if (page.length < limit) assert.equal(answer.next, null, 'there is no more to change')
  return { touched: page.map((job) => job.facts.id), next: answer.next }
}

const change = command({
  name: 'change',
  params: fc.record({
    filter,
    action: fc.oneof(
      { weight: 3, arbitrary: fc.constant<JobChange>({ type: 'replay' }) },
      { weight: 1, arbitrary: payload.map((text): JobChange => ({ type: 'replay', payload: text })) },
      { weight: 1, arbitrary: fc.constant<JobChange>({ type: 'discard' }) },
      { weight: 1, arbitrary: reason.map((why): JobChange => ({ type: 'cancel', reason: why })) },
    ),
    limit: fc.constantFrom(1, 2, 100),
    toTheEnd: fc.boolean(),
  }),
  run: async (model, under, { filter: chosen, action, limit, toTheEnd }) => {
    const { states, queues } = chosen
    const wanted: JobFilter = { ...(states && { states }), ...(queues && { queues }) }
    const touched: JobId[] = []
    let after: JobId | null = null
    for (;;) {
      const step: Awaited<ReturnType<typeof changeStep>> = await changeStep(
        model,
        under,
        wanted,
        action,
        limit,
        after,
      )
      touched.push(...step.touched)
      after = step.next
      if (after === null || !toTheEnd) return touched
    }
  },
})

const replayDead = command({
  name: 'replayDead',
  params: fc.record({ limit: fc.constantFrom(1, 2, 100) }),
  when: (model) => model.inState('dead').length > 0,
  run: async (model, under, { limit }) => {
    return (await changeStep(model, under, { states: ['dead'] }, { type: 'replay' }, limit, null)).touched
  },
})

// ── edits ────────────────────────────────────────────────────────────────────

const edit = command({
  name: 'edit',
  params: fc.record({
    which: choice,
    waiting: fc.constantFrom(true, true, false),
    payload: fc.option(payload),
    priority: fc.option(fc.nat({ max: 9 })),
    due: fc.option(fc.oneof(lastsMs, fc.constant(0))),
  }),
  when: (model) => model.jobs.size > 0,
  run: async (model, under, { which, waiting, payload: text, priority, due }) => {
    const some = waiting ? model.inState('scheduled', 'ready') : []
    const job = pick(some, which) ?? pick([...model.jobs.values()], which) ?? assert.fail()
    const rank = priority === null ? {} : { priority, headStartMs: priority * MINUTE_MS }
    const changed: JobEdit = {
      ...(text !== null && { payload: text }),
      ...(priority !== null && { rank: { priority, headStartMs: priority * MINUTE_MS } }),
      ...(due !== null && { due: { inMs: due } }),
    }
    const answer = await editOne(under.store, job.facts.id, changed)
    const waits = model.waits(job.facts.id)
    const instead = isFinal(job.state) ? 'final' : 'running'
    assert.equal(answer, waits ? 'edited' : instead)
    if (waits) {
      job.facts = { ...job.facts, ...(text !== null && { payload: text }), ...rank }
      if (due !== null) model.moveDue(job, { inMs: due })
      else if (job.dueAt <= model.now) job.loose.state = ['scheduled', 'ready']
    }
    return [job.facts.id]
  },
})

// ── reports ──────────────────────────────────────────────────────────────────

const report = command({
  name: 'report',
  params: fc.record({
    which: choice,
    position: fc.nat({ max: 3 }),
    progress: fc.option(
      fc.record({ done: fc.nat({ max: 9 }), total: fc.constant(9), note: fc.constant(null) }),
    ),
    lines: fc.constantFrom(0, 1, 70),
    stale: fc.constantFrom(true, false, false),
  }),
  when: (model) => model.leases.length > 0,
  run: async (model, under, { which, position, progress, lines, stale }) => {
    // Mostly running jobs, sometimes jobs that no longer run.
    const open = model.leases.filter((lease) => lease.positions.includes('open'))
    const { worker, token, ids } =
      pick(stale ? model.leases : open, which) ?? pick(model.leases, which) ?? assert.fail()
    const log = Array.from({ length: lines }, (_, n) => ({
      at: model.now,
      level: 'info' as const,
      message: `line ${n} of ${which}`,
      fields: null,
    }))
    const one: Report = { token, position: position % (ids.length + 1), progress, log }
    await under.store.cycle({ worker, settle: [], claim: null, reports: [one] })
    const id = model.report(worker, one)
    return id === null ? [] : [id]
  },
})

export const adminCommands: readonly fc.Arbitrary<Command>[] = [
  pause,
  ...often(2, cancel),
  cancelMissing,
  change,
  ...often(2, replayDead),
  ...often(2, edit),
  ...often(3, report),
]
